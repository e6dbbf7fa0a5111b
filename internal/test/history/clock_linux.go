package history

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic is a clock that all processes share and none can set: a step of the wall clock must not reorder a history.
func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return time.Now().UnixNano()
	}
	return ts.Nano()
}
