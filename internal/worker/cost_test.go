package worker_test

import (
	"runtime"
	"testing"
)

// Between a read and an ack the framework allocates only events, 32 at a time.
func TestAllocationsPerEvent(t *testing.T) {
	const n = 100_000
	for _, l := range loops {
		t.Run(l.name, func(t *testing.T) {
			counts := [2]uint64{}
			for i, events := range []int{1000, 1000 + n} {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				feed(t, l.fn, events, false)
				runtime.ReadMemStats(&after)
				counts[i] = after.Mallocs - before.Mallocs
			}
			if per := float64(counts[1]-counts[0]) / n; per > 0.1 {
				t.Errorf("%.3f allocations per event, want 0.1 at most", per)
			} else {
				t.Logf("%.3f allocations per event", per)
			}
		})
	}
}
