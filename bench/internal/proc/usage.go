// Package proc is about this process and those that it starts.
package proc

import (
	"runtime"
	"runtime/metrics"
	"syscall"
	"time"
)

// CPU returns the CPU time of all threads of this process so far.
func CPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Peak returns the peak memory of this process so far, in bytes.
func Peak() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) << 10 // others count in KiB
}

// Memory collects garbage and returns the bytes of the heap's objects and of the
// stacks that are left.
func Memory() (bytes uint64) {
	runtime.GC()
	runtime.GC() // what finalizers let go of
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	for _, s := range samples {
		bytes += s.Value.Uint64()
	}
	return bytes
}
