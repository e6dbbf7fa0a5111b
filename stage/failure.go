package stage

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/retryqueue"
	istage "github.com/runnel-go/runnel/internal/stage"
)

// lonely is after how many crashes in a row a visit runs alone in its worker.
const lonely = 2

// A failure is what is stored of a visit that failed.
type failure istage.Failure

func (f failure) text() string { return istage.Failure(f).Text() }

// failed returns the failure after one more attempt.
func (f failure) failed(now time.Time, err error, reason string, version int64) failure {
	f.Attempts++
	f.Crashes = 0
	f.First, f.Last = cmp.Or(f.First, now.UnixMilli()), now.UnixMilli()
	f.Error, f.Reason, f.Version, f.Dead = err.Error(), reason, version, false
	return f
}

// failuresOf parses the failures of an entity by stage.
func failuresOf(text string) (map[string]failure, error) {
	out := map[string]failure{}
	if text == "" {
		return out, nil
	}
	for _, line := range strings.Split(text[1:], "\n") {
		stage, stored, _ := strings.Cut(line, " ")
		f, err := istage.ParseFailure(stored)
		if err != nil {
			return out, fmt.Errorf("failure of stage %s: %w", stage, err)
		}
		out[stage] = failure(f)
	}
	return out, nil
}

// settle returns what becomes of a visit that failed, and when.
func (f *failure) settle(stage string, retry *retryqueue.Retry, again *time.Duration) istage.Settlement {
	wait := retry.Wait(f.Attempts)
	if again != nil {
		wait = *again
	}
	what := istage.Fails
	if f.Dead {
		what, wait = istage.Dies, 0
	}
	return istage.Settlement{Stage: stage, What: what, Due: istage.In(wait), Text: f.text()}
}
