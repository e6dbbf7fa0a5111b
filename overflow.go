package runnel

import "github.com/runnel-go/runnel/internal/store"

// An Overflow decides what happens to records for a partition whose length is the
// stream's MaxLen, and whose events are not processed yet.
type Overflow int

const (
	Reject     Overflow = iota + 1 // Send returns ErrStreamFull. The default
	Block                          // Send waits until there is room, or its context ends
	DropOldest                     // the oldest events are removed, processed or not; each registered processor that misses them counts them
)

// String returns the name of the overflow policy.
func (o Overflow) String() string {
	return nameOf("Overflow", int(o), store.OverflowReject, store.OverflowBlock, store.OverflowDropOldest)
}

var (
	// ErrStreamFull is returned if a partition has its maximal length. The error around
	// it names the processor that holds the partition back.
	ErrStreamFull error

	// ErrSelfBlock is returned where a processor would wait for room in the stream that
	// it processes, and so for itself. Send detects this if its context is that of the
	// iteration or derived from it.
	ErrSelfBlock error
)
