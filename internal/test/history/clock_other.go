//go:build !linux

package history

import "time"

// monotonic is the wall clock: portable code has no other that several processes share.
func monotonic() int64 { return time.Now().UnixNano() }
