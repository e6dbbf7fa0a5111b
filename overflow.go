package runnel

import (
	"fmt"

	"github.com/runnel-go/runnel/internal/store"
)

// An Overflow says what becomes of records that are sent to a partition whose
// length is the stream's Size, and whose events are not processed yet.
type Overflow int

const (
	Reject     Overflow = iota + 1 // Send returns ErrStreamFull. The default
	Block                          // Send waits until there is room, or its context ends
	DropOldest                     // the oldest events make room, processed or not; each registered processor that misses them counts them
)

// String returns the name of the overflow policy.
func (o Overflow) String() string {
	switch o {
	case Reject:
		return store.OverflowReject
	case Block:
		return store.OverflowBlock
	case DropOldest:
		return store.OverflowDropOldest
	}
	return fmt.Sprintf("Overflow(%d)", int(o))
}

var (
	// ErrStreamFull says that a partition is as long as it may be. The error
	// around it names the processor that holds the partition back.
	ErrStreamFull = store.ErrStreamFull

	// ErrSelfBlock is returned where a processor would have waited for room in
	// the stream that it processes, and so for itself. Send knows that by its
	// context, if that is the one of the iteration or was derived from it.
	ErrSelfBlock = store.ErrSelfBlock
)
