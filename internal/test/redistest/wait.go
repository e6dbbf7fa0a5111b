package redistest

import (
	"cmp"
	"os"
	"strings"
	"testing"
	"time"
)

// Patience is how long Eventually waits. It is long, since a busy machine is no fault. What ought to fail sets PatienceVariable.
var Patience = patience()

// PatienceVariable is the variable of the environment with another Patience.
const PatienceVariable = "RUNNEL_TEST_PATIENCE"

func patience() time.Duration {
	d, _ := time.ParseDuration(os.Getenv(PatienceVariable))
	return cmp.Or(d, 5*time.Minute)
}

// Eventually waits until done reports true. After Patience it fails the test, with what it
// waited for and what explain returns.
func Eventually(t testing.TB, what string, done func() bool, explain ...func() string) {
	t.Helper()
	if Within(Patience, done) {
		return
	}
	text := []string{what}
	for _, f := range explain {
		text = append(text, f())
	}
	t.Fatalf("not within %v: %s", Patience, strings.Join(text, "\n"))
}

// Within polls until done reports true, for limit at most, and reports whether it did.
func Within(limit time.Duration, done func() bool) bool {
	for deadline := time.Now().Add(limit); !done(); time.Sleep(pollInterval) {
		if time.Now().After(deadline) {
			return done()
		}
	}
	return true
}
