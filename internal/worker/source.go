package worker

import (
	"context"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/retryqueue"
	"github.com/runnel-go/runnel/internal/rows"
	"github.com/runnel-go/runnel/internal/store"
)

// An Input is what a consumer has of one ownership of a partition.
type Input struct {
	Partition int
	Epoch     int64
	Ending    <-chan struct{} // closed when the ownership begins to end
	Rows      *rows.Partition // of an atomic processor, else nil
	Source
}

// A Source hands the entries of one ownership to its consumer, and takes their outcomes.
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
//  5. The outcome: Ack for all; or Fail for some, then Ack for the others; or Ignored, then Ack
//     for all; or Interrupted, Ack for those that are done, and nothing but Quarantine after
//     that. Then the next iteration begins, with step 2 or 3.
//
// Next combines steps 5 and 2 for one entry that is done and one that already waits.
// Nothing is called after io.EOF from Take, an error from Fail, or Quarantine, except Ack
// for the entries of the iteration that did not fail.
//
// Take, Holds, Wait, Fail and Quarantine block; so do Ack and Interrupted after a parked event, while
// the outcome is stored. All but Stuck are called one at a time, by the consumer's goroutine or
// on its behalf.
type Source interface {
	Reader
	Gate
	Settler
}

type Reader interface {
	// Take returns n entries. It returns fewer when within has passed since the first of
	// them arrived, or when no more fit into the buffer. It blocks until the first one
	// arrives, and while too many acks are outstanding. io.EOF: the ownership ends, and no
	// more entries follow. The slice is valid until the next call.
	//
	// Take may return one parked event instead, whatever n; or none where rows have ended by the time that Input.Rows is quiet
	// to, and no event waits that came before.
	Take(n int, within time.Duration) ([]redisconn.Entry, error)

	// Next acks one entry and returns the next one, if one waits and needs no special treatment. It
	// never blocks. With checked, Next itself checks what Holds checks; without, the consumer calls
	// Holds before it processes the entry.
	Next(done string, checked bool) (e redisconn.Entry, ok bool)

	// Untake gives back the last entries that Take returned, for the next Take.
	Untake(entries []redisconn.Entry)

	// Prior returns the history of an entry before it was taken.
	Prior(id string) Prior
}

// Prior is the history of an entry before it was taken.
type Prior struct {
	Redelivered bool // an earlier owner was given it
	Attempts    int  // that were made of it; 0 where they were not counted

	// Deadly is not nil if so many owners in a row have ended at the entry that it counts as failed
	// without a Retry.
	Deadly error
}

// A Gate decides whether the user's function may run.
type Gate interface {
	// Live reports whether the ownership is not ending and its lease holds.
	Live() bool

	// Holds reports whether the function may be called now. It blocks while the partition is
	// paused. After false nothing may be processed, taken entries are not done, and the consumer's
	// context has ended.
	Holds() bool

	// Stuck reports that the function continues with an event after its Timeout. Any goroutine may
	// call it while the function runs. ctx is for the log.
	Stuck(ctx context.Context, event string, after time.Duration, stack string)
}

// A Settler takes the outcomes of taken entries.
type Settler interface {
	// Reach makes sure that a commit can emit to a partition. It may block, for the first time; with an error the ownership
	// is over, or ctx is. It may be called concurrently.
	Reach(ctx context.Context, to store.StreamPartition) error

	// Ack marks these entries as done. Their IDs ascend. What Input.Rows has pending is committed with them, by Next, too.
	Ack(ids []string)

	// Commit has what Input.Rows has pending committed, of an iteration without entries: that of a row that ended. It blocks
	// while too much waits.
	Commit()

	// Wait waits between two attempts that Fail is not for, and reports false if the ownership begins to end.
	Wait(d time.Duration) bool

	// Fail marks these entries as failed, in their order. It blocks until their outcome is stored.
	// An error means that the ownership ended before. ctx is for the log: it may carry a trace.
	Fail(ctx context.Context, failures []retryqueue.Failure) error

	// Ignored reports n events dropped by policy; 0: the function failed before it asked for an
	// event. ctx is for the log.
	Ignored(ctx context.Context, n int, err error)

	// Interrupted gives up the entries of the last iteration for a reason that is not theirs: this
	// attempt does not count.
	Interrupted()

	// Quarantine stops the partition, which stays owned, and blocks until the ownership ends.
	// event is the ID of the entry that failed, or "". ctx is for the log.
	Quarantine(ctx context.Context, event string, err error)
}
