package worker

import (
	"context"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/retryqueue"
)

// An Ownership is one ownership of a partition, as its consumer sees it.
type Ownership struct {
	Partition int
	Epoch     int64
	Ending    <-chan struct{} // closed when the ownership begins to end
	Source
}

// A Source hands the entries of one ownership to its consumer, and takes what became of them.
//
// The order of the calls:
//
//  1. Holds, before the user's function is called for the first time, with no entry taken.
//  2. Take, which returns entries. Each of them is settled in step 5, or given back by Untake
//     before the function runs, before Take is called again.
//  3. Prior, for each entry that comes next. Entries of one Take may go to the function in
//     several iterations: before each of them but the first, Live.
//  4. Holds, right before the function runs over the entries of the iteration; again before
//     each further attempt that middleware makes.
//  5. What became of them: Ack for all; or Fail for some, then Ack for the others; or Ignored,
//     then Ack for all; or Interrupted, Ack for those that are done, and nothing but Quarantine
//     after that. Then the next iteration begins, with step 2 or 3.
//
// Next is steps 5 and 2 at once, for one entry that is done and one that is there already.
// Nothing is called after io.EOF from Take, an error from Fail, or Quarantine, except Ack
// for the entries of the iteration that did not fail.
//
// Take, Holds, Fail and Quarantine block; so do Ack and Interrupted after a parked event, while
// the outcome is stored. All but Stuck are called one at a time, by the consumer's goroutine or
// on its behalf.
type Source interface {
	Reader
	Gate
	Settler
}

// A Reader returns entries.
type Reader interface {
	// Take returns n entries. It returns fewer when within has passed since the first of
	// them arrived, or when no more fit into the buffer. It blocks until the first one
	// arrives, and while too many acks are outstanding. io.EOF: the ownership ends, and no
	// more entries follow. The slice is valid until the next call.
	//
	// Take may return one parked event instead, whatever n.
	Take(n int, within time.Duration) ([]redisconn.Entry, error)

	// Next acks one entry and returns the next one, if one is there and runs like any other.
	// It never blocks. With checked, Next itself asks what Holds asks; without, the consumer
	// calls Holds before it processes the entry.
	Next(done string, checked bool) (e redisconn.Entry, ok bool)

	// Untake gives back the last entries that Take returned. Take returns them again.
	Untake(entries []redisconn.Entry)

	// Prior returns what became of an entry before it was taken.
	Prior(id string) Prior
}

// Prior is what became of an entry before it was taken.
type Prior struct {
	Redelivered bool // an earlier owner was given it
	Attempts    int  // that were made of it; 0 where they were not counted

	// Deadly says that so many owners in a row have ended at the entry that without a Retry
	// it counts as one that failed.
	Deadly error
}

// A Gate decides whether the user's function may run.
type Gate interface {
	// Live reports whether the ownership is not ending and its lease holds.
	Live() bool

	// Holds reports whether the function may be called now. It blocks while the partition is
	// paused. After false nothing may be processed, what was taken is not done, and the
	// consumer's context has ended.
	Holds() bool

	// Stuck reports that the function goes on with an event though its Timeout has ended its
	// context. Any goroutine may call it while the function runs. ctx is for the log.
	Stuck(ctx context.Context, event string, after time.Duration, stack string)
}

// A Settler takes what became of the entries that were taken.
type Settler interface {
	// Ack says that these entries are done. Their IDs ascend.
	Ack(ids []string)

	// Fail says that these entries failed, in their order. It blocks until what becomes of
	// them is stored. An error says that the ownership ended before. ctx is for the log: it
	// may carry a trace.
	Fail(ctx context.Context, failures []retryqueue.Failure) error

	// Ignored says that n events were dropped by policy; 0: the function failed before it
	// asked for an event. ctx is for the log.
	Ignored(ctx context.Context, n int, err error)

	// Interrupted says that the entries of the last iteration were given up for a reason that
	// is not theirs: this attempt does not count.
	Interrupted()

	// Quarantine stops the partition, which stays owned, and blocks until the ownership ends.
	// event is the ID of the entry that failed, or "". ctx is for the log.
	Quarantine(ctx context.Context, event string, err error)
}
