// Package monotime is the monotonic clock as a number: cheaper than a time.Time, and good for atomics.
package monotime

import "time"

var start = time.Now()

// Now returns the time in nanoseconds since some moment before the first call. The clock goes
// on while the process is stopped. It may be called concurrently.
func Now() int64 { return int64(time.Since(start)) }
