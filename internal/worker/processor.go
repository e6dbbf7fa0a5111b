package worker

import (
	"context"
	"errors"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/retryqueue"
	"github.com/runnel-go/runnel/internal/rows"
)

// Causes of an ended ownership, returned to handlers by context.Cause.
var (
	ErrReleased = errors.New("partition released")
	ErrLost     = errors.New("partition lost")
	ErrShutdown = errors.New("worker shutting down")
)

// A Processor is a user's function over a stream, without its types. The root package fills it in.
type Processor struct {
	Stream, Name string
	Partitions   int

	// Start is the start position where the processor never ran: an entry ID or "$"; "" is the
	// beginning.
	Start string

	Lease, Grace, JoinDelay time.Duration
	Prefetch                int   // events read ahead per partition
	Adapt                   bool  // that is the most; see pace
	PrefetchBytes           int64 // and their bytes
	ReadConns               int
	ByPosition              bool          // else by group: see course
	Atomic                  bool          // by position, and what an iteration changes is committed with its acks
	Tables                  []rows.Config // that it changes, without what differs by partition

	Retry  *retryqueue.Retry // nil: none
	MaxLen int64             // of the stream: as many events may be parked per partition
	// Key returns the key of an entry; false if it cannot be decoded.
	Key func(redisconn.Entry) (key string, ok bool)

	// Gates are the names of what pauses by itself, besides the processor as a whole: the parts of
	// an extension. Rules name each like a processor of the stream.
	Gates []string

	// Consume processes one partition for one ownership: it takes from in until
	// io.EOF and returns nil, or an error that stops the worker. ctx ends when
	// the partition is lost or a grace period is over; OwnershipOf(ctx) is the ownership.
	Consume func(ctx context.Context, in Input) error
}
