package worker

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/prefetch"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/retryqueue"

	"github.com/runnel-go/runnel/internal/store"
)

// A tenure is one ownership of one partition by one executor ID. It is the
// Source of its consumer.
//
// Its life: acquired → (ending: no more is delivered) → consumer finished →
// acks flushed → unlocked. Lost cuts in anywhere: from then on nothing is
// delivered and nothing is sent to Redis but the release of what may be ours.
type tenure struct {
	buffer *prefetch.Buffer
	gate
	place  store.Place
	number store.Tenure
	epoch  int64
	given  string // entries up to here were given to an earlier owner
	expiry time.Duration
	since  int64 // by monotime: the lock was obtained before
	log    *slog.Logger

	ctx    context.Context // the handler's
	cancel context.CancelCauseFunc

	lease     atomic.Int64 // until when it is surely ours, by monotime
	ending    chan struct{}
	endingIt  sync.Once
	finished  chan struct{} // the consumer has returned
	over      atomic.Bool   // lost
	gone      chan struct{} // closed when it is lost
	endIt     sync.Once     // see incarnation.end
	retaken   atomic.Bool   // see incarnation.retake
	freeing   atomic.Bool   // the lock is being released
	groupGone atomic.Bool   // our consumer group was destroyed
	ended     chan struct{} // incarnation.end is through

	tell      func(*tenure) // tells the acker
	hurryAcks func()        // has it not wait for more
	processed atomic.Int64  // and not yet in count
	lapse     func()        // the lease is over
	endCause  func() error  // why it ends, if it is not lost
	count     *Counters
	timing    timing
	trimmable atomic.Bool // something was acked since the last trim

	worker  string // its name
	retries *retryqueue.Queue
	shelf   *shelf
	alone   *alone
	retake  func()        // ends the tenure and owns the partition again
	repeat  func(error)   // the same, for Redis has forgotten something
	pokes   chan struct{} // an operator changed something; one token
	losses  losses        // the heartbeat's
	missing string        // an event that the last refresh did not find pending; the heartbeat's
	stored  checkpoint    // the heartbeat's
	poked   int64         // how often, as the last refresh told; the heartbeat's
	stale   atomic.Bool   // what is parked has to be read (again)
	careful bool          // what comes next may have ended the owner before; the consumer's
	holding hold          // the consumer's
	share   share         // the consumer's
	deaths  deaths        // the consumer's
}

func (t *tenure) leaseLength() time.Duration { return t.expiry }
func (t *tenure) nudge()                     { t.buffer.Interrupt() }
func (t *tenure) Partition() int             { return t.place.Partition }
func (t *tenure) Epoch() int64               { return t.epoch }
func (t *tenure) Ending() <-chan struct{}    { return t.ending }
func (t *tenure) holds() bool                { return t.holdsAt(monotime.Now()) }
func (t *tenure) holdsAt(now int64) bool     { return now < t.lease.Load() }
func (t *tenure) renewal() store.Renewal {
	floor, read := t.buffer.Checkpoint()
	return store.Renewal{Place: t.place, Tenure: t.number, Floor: floor, Read: read}
}

// repeated reports whether an earlier owner was given this entry.
func (t *tenure) repeated(id string) bool { return t.given != "" && entryid.Compare(id, t.given) <= 0 }

// Redelivered is Source.Redelivered. It counts such entries, each once.
func (t *tenure) Redelivered(id string) bool {
	if !t.repeated(id) {
		return false
	}
	if t.retries.Runs(id) {
		return true // its attempts are counted elsewhere, and it may be far ahead of what comes next
	}
	if t.timing.counted == "" || entryid.Compare(id, t.timing.counted) > 0 {
		t.timing.counted = id
		t.count.Repeated.Add(1)
	}
	return true
}

// receive adds what was read. Where Redis forgot what it had delivered, for a replica
// that was behind is the master now, that comes again: then nothing more is taken in,
// and the partition is taken over once more, from where Redis knows it to be. So
// entries ascend under one epoch, and none of them is done twice under it.
func (t *tenure) receive(entries []redisconn.Entry) (largest int64) {
	if t.retaken.Load() || len(entries) == 0 {
		return 0 // what was read is pending, and the next tenure's
	}
	if first := entries[0].ID; entryid.Compare(first, t.buffer.Last()) <= 0 {
		if t.isEnding() {
			return 0 // so is this: whoever comes next begins with what Redis knows
		}
		t.repeat(fmt.Errorf("%s was delivered again", first))
		return 0
	}
	return t.buffer.Push(entries)
}

// leaseEnd is when a lease ends that was asked for at sent: a margin before the
// server's expiry, for clocks that run at different speeds.
func leaseEnd(sent int64, expiry time.Duration) int64 { return sent + int64(expiry-expiry/5) }

func (t *tenure) isEnding() bool {
	select {
	case <-t.ending:
		return true
	default:
		return false
	}
}

func (t *tenure) Live() bool {
	select {
	case <-t.ending:
		return false
	default:
		return t.holds()
	}
}

// Holds is asked before each call of the user's function, which may come long
// after Take: middleware waits between two attempts. While the partition is
// paused it waits. If the tenure ends meanwhile, the context ends at once: what
// was taken was not begun, and middleware must not take that for a failure. Nor
// do other partitions wait meanwhile for their turn to be alone.
func (t *tenure) Holds() bool {
	claimed := t.holding
	for {
		now := monotime.Now()
		if !t.enter(now) {
			t.yield()
		} else if t.claimAgain(claimed) {
			t.timing.begin()
			return t.keepsAt(now)
		}
		if t.isEnding() {
			t.alone.forget(t)
			t.cancel(t.endCause())
			return false
		}
		<-t.buffer.Ready()
		t.share.waited(monotime.Now() - now)
	}
}

// claimAgain claims what was given back while the partition was paused.
func (t *tenure) claimAgain(h hold) bool {
	if t.claim(h) {
		return true
	}
	t.leave()
	return false
}

// keeps reports whether the lease holds; if not, the tenure is lost. What is written
// for an event that was processed asks this and not Holds, which waits while the
// partition is paused.
func (t *tenure) keeps() bool { return t.keepsAt(monotime.Now()) }

func (t *tenure) keepsAt(now int64) bool {
	if t.holdsAt(now) {
		return true
	}
	t.lapse()
	return false
}

func (t *tenure) Ignored(ctx context.Context, n int, err error) {
	t.timed()
	if n == 0 { // the function has failed before it asked for an event
		t.leave()
		t.yield()
	}
	t.count.Ignored.Add(int64(n))
	t.log.WarnContext(ctx, "error ignored", "events", n, "err", err)
}

// end begins the end: the consumer gets no more.
func (t *tenure) beginEnd() {
	t.endingIt.Do(func() { close(t.ending) })
	t.buffer.Close()
}

// lose ends the tenure at once: it may have another owner.
func (t *tenure) lose() (first bool) {
	if t.over.Swap(true) {
		return false
	}
	t.cancel(ErrLost)
	close(t.gone)
	t.beginEnd()
	return true
}

// unlocking says that the lock is gone by our own doing.
func (t *tenure) unlocking() bool { return t.freeing.Load() }

func (t *tenure) hasEnded() bool {
	select {
	case <-t.ended:
		return true
	default:
		return false
	}
}

func (t *tenure) isLost() bool { return t.over.Load() }

// flush waits until every ack is confirmed; false if the tenure is lost before.
func (t *tenure) flush() bool {
	for !t.buffer.Flushed() {
		t.hurryAcks()
		select {
		case <-t.gone:
			return false
		case <-t.buffer.Ready():
		}
	}
	return !t.isLost()
}
