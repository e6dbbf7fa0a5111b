// Package monotime is the monotonic clock as a number: cheaper than a time.Time, and good for atomics;
// and a wait.
package monotime

import (
	"context"
	"time"
)

var start = time.Now()

// Now returns the time in nanoseconds since some moment before the first call. The clock goes
// on while the process is stopped. It may be called concurrently.
func Now() int64 { return int64(time.Since(start)) }

// Sleep waits for d, and reports whether ctx lives on.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
