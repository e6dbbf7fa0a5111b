package worker

import (
	"context"
	"errors"
	"time"

	"github.com/runnel-go/runnel/internal/rstream"
)

// Causes of an ended ownership, as context.Cause tells them to a handler.
var (
	ErrReleased = errors.New("partition released")
	ErrLost     = errors.New("partition lost")
	ErrShutdown = errors.New("worker shutting down")
)

// A Processor is a user's function over a stream, without its types. The root
// package fills it in.
type Processor struct {
	Stream, Name string
	Partitions   int

	LockExpiry, Grace, JoinDelay time.Duration
	Prefetch                     int   // events read ahead per partition
	PrefetchBytes                int64 // and their bytes
	ReadConns                    int

	// Consume processes one partition for one tenure: it takes from src until
	// io.EOF and returns nil, or an error that stops the worker. ctx ends when
	// the partition is lost or a grace period is over.
	Consume func(ctx context.Context, src Source) error
}

// A Source is one partition during one tenure, as its consumer sees it. Only
// one goroutine may use it.
type Source interface {
	Partition() int
	Epoch() int64

	// Redelivered says whether an earlier owner was given this entry.
	Redelivered(id string) bool

	// Take returns n entries, or those that are there when within has passed
	// since the first of them arrived, or when no more may be buffered. It
	// waits for the first one as long as it takes, and where too many acks are
	// outstanding. io.EOF: the tenure ends, nothing more will come. The slice
	// is valid until the next call.
	Take(n int, within time.Duration) ([]rstream.Entry, error)

	// Live says whether entries that were taken may still be delivered: the
	// tenure is not ending and its lease holds.
	Live() bool

	// Holds is asked right before each call of the user's function, from its
	// very beginning on. It waits while the partition is paused, and says
	// whether the call may be made. If not, nothing more may be processed, what
	// was taken is not done, and the consumer's context has ended.
	Holds() bool

	// Ack tells that these entries are done. It does not wait. gap says that
	// an entry before them stays unacked.
	Ack(ids []string, gap bool)

	// Ignored counts events that were dropped by policy.
	Ignored(n int, err error)

	// Quarantine stops the partition, which stays owned, and waits for the end
	// of the tenure.
	Quarantine(err error)

	// Ending is closed when the tenure begins to end.
	Ending() <-chan struct{}
}
