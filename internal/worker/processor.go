package worker

import (
	"context"
	"errors"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/retryqueue"
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

	// Start is where it begins in a partition over which it never ran: an entry ID
	// or "$"; "" is the beginning.
	Start string

	Lease, Grace, JoinDelay time.Duration
	Prefetch                int   // events read ahead per partition
	Adapt                   bool  // that is the most; see pace
	PrefetchBytes           int64 // and their bytes
	ReadConns               int

	Retry  *retryqueue.Retry // nil: none
	MaxLen int64             // of the stream: as many events may be parked per partition
	// Key returns the key of an entry; false where it cannot be decoded.
	Key func(redisconn.Entry) (key string, ok bool)

	// Consume processes one partition for one ownership: it takes from src until
	// io.EOF and returns nil, or an error that stops the worker. ctx ends when
	// the partition is lost or a grace period is over.
	Consume func(ctx context.Context, src Source) error
}

// A Source is one partition during one ownership, as its consumer sees it. Only
// one goroutine may use it.
type Source interface {
	Partition() int
	Epoch() int64

	// Redelivered reports whether an earlier owner was given this entry, which comes next.
	Redelivered(id string) bool

	// Take returns n entries, or those that are there when within has passed
	// since the first of them arrived, or when no more may be buffered. It
	// waits for the first one as long as it takes, and where too many acks are
	// outstanding. io.EOF: the ownership ends, nothing more will come. The slice
	// is valid until the next call.
	//
	// With a Retry it may return one parked event instead, whatever n. Then the
	// entries before it must have been acked, failed or taken back.
	Take(n int, within time.Duration) ([]redisconn.Entry, error)

	// Next is Ack for one entry, and then Take(1, 0) for one that is there and runs
	// like any other; else ok is false: it does not wait. Unless it is checked, Holds
	// has to be asked before the entry is processed.
	Next(done string, checked bool) (e redisconn.Entry, ok bool)

	// Untake gives back the last entries that Take returned: they come again.
	Untake(entries []redisconn.Entry)

	// Attempts is how many attempts of an entry that Take returned were made
	// before; 0 where nobody counted.
	Attempts(id string) int

	// Deadly is an error where so many owners in a row have ended at this entry, which
	// comes next and alone, that without a Retry it is to count as one that failed.
	Deadly(id string) error

	// Live reports whether entries that were taken may still be delivered: the
	// ownership is not ending and its lease holds.
	Live() bool

	// Holds is asked right before each call of the user's function, from its
	// very beginning on, but where nothing came between the call and Take. It
	// waits while the partition is paused, and reports whether the call may be made.
	// If not, nothing more may be processed, what was taken is not done, and the
	// consumer's context has ended.
	Holds() bool

	// Stuck reports that the function goes on with an event though its Timeout
	// has ended its context. It may be called by another goroutine, while the
	// function runs. ctx is for the log.
	Stuck(ctx context.Context, event string, after time.Duration, stack string)

	// Ack tells that these entries are done. It does not wait, but for a parked
	// event. gap says that an entry before them stays unacked.
	Ack(ids []string, gap bool)

	// Fail tells that entries of the last Take failed, in their order, and waits
	// until it is stored what becomes of them. An error says that the ownership ended
	// before. ctx is for the lines of the log: it may carry a trace.
	Fail(ctx context.Context, failures []retryqueue.Failure) error

	// Interrupted tells that the entries of the last Take were begun and given up
	// for a reason that is not theirs. They are not acked.
	Interrupted()

	// Ignored counts events that were dropped by policy. ctx is for the log.
	Ignored(ctx context.Context, n int, err error)

	// Quarantine stops the partition, which stays owned, and waits for the end
	// of the ownership. event is the ID of the entry that failed, or "". ctx is for
	// the log.
	Quarantine(ctx context.Context, event string, err error)

	// Ending is closed when the ownership begins to end.
	Ending() <-chan struct{}
}
