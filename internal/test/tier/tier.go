// Package tier selects tests. `go test ./...` runs those that are quick and need only Go. With
// RUNNEL_TEST=full, as in `make check`, all run.
package tier

import (
	"os"
	"testing"
)

// Full reports whether all tests run.
func Full() bool { return os.Getenv("RUNNEL_TEST") == "full" }

// Slow skips a test, or a benchmark, that takes more than 5 s unless all of them run.
func Slow(t testing.TB) {
	t.Helper()
	if !Full() {
		t.Skip("slow: RUNNEL_TEST=full runs it, and make check")
	}
}

// Server skips a test that needs redis-server unless all of them run.
func Server(t testing.TB) {
	t.Helper()
	if !Full() {
		t.Skip("needs redis-server: RUNNEL_TEST=full runs it, and make check")
	}
}

// Large is a number of events or partitions, and a fifth of it under the race detector.
func Large(n int) int {
	if Race {
		return n / 5
	}
	return n
}

// Sequential skips a test under the race detector, which makes it ten times slower and finds nothing
// there: it has one goroutine, or runs other programs, or its goroutines do for long or in large
// numbers what they do in shorter tests, too. make quick or make check runs it without.
func Sequential(t testing.TB) {
	t.Helper()
	if Race {
		t.Skip("runs without the race detector")
	}
}
