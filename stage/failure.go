package stage

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/retryqueue"
	istage "github.com/runnel-go/runnel/internal/stage"
)

// Why a visit failed, beside the reasons of retryqueue.
const reasonLoop = "loop" // stages have changed the entity too often

// lonely is after how many crashes in a row a visit runs alone in its worker.
const lonely = 2

// A failure is what is stored of a visit that failed. Times are in ms by Redis' clock.
type failure struct {
	Attempts int    `json:"n"`
	Crashes  int    `json:"crashes,omitempty"` // in a row, at last
	First    int64  `json:"first,omitempty"`
	Last     int64  `json:"last,omitempty"`
	Error    string `json:"err,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Version  int64  `json:"version,omitempty"` // of the entity
	Dead     bool   `json:"dead,omitempty"`
}

const errorBytes = 4 << 10 // kept of an error's text

func (f failure) text() string {
	f.Error = strings.ToValidUTF8(f.Error[:min(len(f.Error), errorBytes)], "")
	text, _ := json.Marshal(f) // numbers and texts
	return string(text)
}

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
		var f failure
		if err := json.Unmarshal([]byte(stored), &f); err != nil {
			return out, fmt.Errorf("failure of stage %s: %w", stage, err)
		}
		out[stage] = f
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
