//go:build unix

package mutants

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/tier"
)

// chaosVariable makes TestChaosMutants play all of them, not only the quick ones.
const chaosVariable = "RUNNEL_CHAOS_MUTANTS"

// chaosLimit is how long a mutant is hurt at most, in rounds that are judged one by one;
// chaosPatience how long it may take to come to rest after each, which it may never do.
const (
	chaosLimit    = time.Minute
	chaosRound    = 6 * time.Second
	chaosPatience = 4 * time.Second
)

// The judge of real processes notices that each of these rules is missing.
func TestChaosMutants(t *testing.T) {
	tier.Slow(t)
	p := build(t, "internal/test/chaos")
	for _, m := range chaosMutants {
		if !m.quick && os.Getenv(chaosVariable) == "" {
			continue
		}
		t.Run(strings.ReplaceAll(m.rule, " ", "_"), func(t *testing.T) {
			began := time.Now()
			out := m.play(t, p)
			found := violations(out)
			if found[m.want] == 0 {
				t.Fatalf("no violation of %s within %v of %s, but %v\n%s", m.want, chaosLimit, m.faults, found, tail(out))
			}
			t.Logf("caught in %v under %s: %v", time.Since(began).Round(100*time.Millisecond), m.faults, found)
		})
	}
}

// play hurts the mutant until a round is not as it should be.
func (m chaosMutant) play(t *testing.T, p *program) (output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*chaosLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.binary, "-test.v", "-test.run", exactly(m.load))
	cmd.Dir = p.dir
	cmd.Env = append(p.environment(m.rule), "RUNNEL_CHAOS_FAULTS="+m.faults, "RUNNEL_CHAOS_BAD="+m.bad, "RUNNEL_CHAOS_READS=group", "TMPDIR="+t.TempDir(),
		fmt.Sprint("RUNNEL_CHAOS_DURATION=", chaosLimit), fmt.Sprint("RUNNEL_CHAOS_ROUND=", chaosRound), fmt.Sprint("RUNNEL_CHAOS_PATIENCE=", chaosPatience))
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Fatal(err)
	}
	return string(out)
}

var violated = regexp.MustCompile(`(?m)^\s+([a-z]+): (?:stream "|record:)`)

// violations counts those that a report explains, by class.
func violations(out string) map[history.Class]int {
	found := map[history.Class]int{}
	for _, match := range violated.FindAllStringSubmatch(out, -1) {
		found[history.Class(match[1])]++
	}
	return found
}
