// Package proc is about this process and those that it starts.
package proc

import (
	"runtime"
	"runtime/metrics"
	"syscall"
	"time"
)

// usage is the zero value where the system does not tell it.
func usage() (u syscall.Rusage) {
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u
}

// CPU returns the CPU time of all threads of this process so far.
func CPU() time.Duration {
	u := usage()
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Peak returns the peak memory of this process so far, in bytes.
func Peak() int64 {
	peak := int64(usage().Maxrss)
	if runtime.GOOS == "darwin" {
		return peak
	}
	return peak << 10 // others count in KiB
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
