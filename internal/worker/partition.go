package worker

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/prefetch"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/retryqueue"

	"github.com/runnel-go/runnel/internal/store"
)

// A partition is one ownership of one partition by one executor ID. It is the
// Source of its consumer.
//
// Its life: acquired → (ending: no more is delivered) → consumer finished →
// acks flushed → unlocked. Lost cuts in anywhere: from then on nothing is
// delivered and nothing is sent to Redis but the release of what may be ours.
type partition struct {
	host   host
	buffer *prefetch.Buffer
	pauseGate
	keys   store.Partition
	claim  store.Claim
	epoch  int64
	given  string // entries up to here were given to an earlier owner
	expiry time.Duration
	since  int64 // by monotime: the lock was obtained before
	log    *slog.Logger

	ctx    context.Context // the handler's
	cancel context.CancelCauseFunc
	lease  atomic.Int64 // until when it is surely ours, by monotime
	life   lifecycle

	count     *Counters
	processed atomic.Int64 // and not yet in count
	timing    timing
	trimmable atomic.Bool // something was acked since the last trim

	retries   *retryqueue.Queue
	parked    *redisStore
	stale     atomic.Bool // what is parked has to be read (again)
	isolation *crashIsolation
	notified  chan struct{} // an operator changed something; one token

	beat beatState
	loop loopState
}

// A host is what a partition needs of the member that owns it. Its methods must not block,
// and may be called concurrently.
type host interface {
	markDirty(*partition)     // there are acks to send
	flushAcks()               // and no time to wait for more
	leaseEnded(*partition)    // the lease is over: the partition is lost
	endCause() error          // why partitions end that are not lost
	retake(*partition)        // end the ownership and own the partition again
	repeat(*partition, error) // the same, for Redis has forgotten something
}

// A lifecycle is how far the end of an ownership has come.
type lifecycle struct {
	ending    chan struct{}
	endingIt  sync.Once
	finished  chan struct{} // the consumer has returned
	over      atomic.Bool   // lost
	gone      chan struct{} // closed when it is lost
	endIt     sync.Once     // see member.end
	retaken   atomic.Bool   // see member.retake
	freeing   atomic.Bool   // the lock is being released
	groupGone atomic.Bool   // our consumer group was destroyed
	ended     chan struct{} // member.end is through
}

func (l *lifecycle) init() {
	l.ending, l.finished, l.gone, l.ended = make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
}

// A beatState is what heartbeats know of a partition; only they use it.
type beatState struct {
	gaps          gapCounter
	missing       string // an event that the last refresh did not find pending
	stored        checkpoint
	notifications int64 // how often operators have changed something, as the last refresh told
}

// A loopState is what the consumer's goroutine knows of a partition; only it uses it.
type loopState struct {
	careful bool // what comes next may have ended the owner before
	turn    isolation
	share   share
	deaths  deaths
}

// ownership is p, as its consumer sees it, with src to take from.
func (p *partition) ownership(src Source) Ownership {
	return Ownership{Partition: p.keys.Number, Epoch: p.epoch, Ending: p.life.ending, Source: src}
}

func (p *partition) leaseLength() time.Duration  { return p.expiry }
func (p *partition) nudge()                      { p.buffer.Interrupt() }
func (p *partition) leaseHolds() bool            { return p.leaseHoldsAt(monotime.Now()) }
func (p *partition) leaseHoldsAt(now int64) bool { return now < p.lease.Load() }
func (p *partition) leaseRequest() store.LeaseRequest {
	floor, read := p.buffer.Checkpoint()
	return store.LeaseRequest{Partition: p.keys, Claim: p.claim, Committed: floor, Read: read}
}

// repeated reports whether an earlier owner was given this entry.
func (p *partition) repeated(id string) bool {
	return p.given != "" && entryid.Compare(id, p.given) <= 0
}

// Prior is Source.Prior. It counts entries that an earlier owner was given, each once, except
// parked ones: their attempts are counted elsewhere, and one may be far ahead of what comes next.
func (p *partition) Prior(id string) Prior {
	prior := Prior{Redelivered: p.repeated(id), Attempts: p.retries.Attempts(id)}
	if p.decided(id) {
		prior.Deadly = p.loop.deaths.err()
	}
	if prior.Redelivered && !p.retries.Runs(id) && (p.timing.counted == "" || entryid.Compare(id, p.timing.counted) > 0) {
		p.timing.counted = id
		p.count.Repeated.Add(1)
	}
	return prior
}

// receive adds entries that were read, and returns the size of the largest. After a failover to
// a replica that was behind, Redis delivers entries again: then receive adds none, and the
// partition is taken over once more, from the position that Redis knows. So entries ascend
// under one epoch, and none is processed twice under it.
func (p *partition) receive(entries []redisconn.Entry) (largest int64) {
	if p.life.retaken.Load() || len(entries) == 0 {
		return 0 // what was read is pending, and the next ownership's
	}
	if first := entries[0].ID; entryid.Compare(first, p.buffer.Last()) <= 0 {
		if p.isEnding() {
			return 0 // pending, too: the next owner begins with what Redis knows
		}
		p.host.repeat(p, fmt.Errorf("%s was delivered again", first))
		return 0
	}
	return p.buffer.Push(entries)
}

// leaseDeadline is when a lease ends that was asked for at sent: a margin before the
// server's expiry, for clocks that run at different speeds.
func leaseDeadline(sent int64, expiry time.Duration) int64 { return sent + int64(expiry-expiry/5) }

func (p *partition) isEnding() bool {
	select {
	case <-p.life.ending:
		return true
	default:
		return false
	}
}

func (p *partition) Live() bool {
	select {
	case <-p.life.ending:
		return false
	default:
		return p.leaseHolds()
	}
}

// Holds is asked before each call of the user's function, which may come long
// after Take: middleware waits between two attempts. While the partition is
// paused it waits. If the ownership ends meanwhile, the context ends at once: what
// was taken was not begun, and middleware must not take that for a failure. Nor
// do other partitions wait meanwhile for their turn to be alone.
func (p *partition) Holds() bool {
	claimed := p.loop.turn
	for {
		now := monotime.Now()
		if !p.enter(now) {
			p.yieldTurn()
		} else if p.reclaimTurn(claimed) {
			p.timing.begin()
			return p.leaseValidAt(now)
		}
		if p.isEnding() {
			p.isolation.forget(p)
			p.cancel(p.host.endCause())
			return false
		}
		<-p.buffer.Ready()
		p.loop.share.waited(monotime.Now() - now)
	}
}

// reclaimTurn claims what was given back while the partition was paused.
func (p *partition) reclaimTurn(h isolation) bool {
	if p.claimTurn(h) {
		return true
	}
	p.leave()
	return false
}

// leaseValid reports whether the lease holds; if not, the ownership is lost. What is written
// for an event that was processed asks this and not Holds, which waits while the
// partition is paused.
func (p *partition) leaseValid() bool { return p.leaseValidAt(monotime.Now()) }

func (p *partition) leaseValidAt(now int64) bool {
	if p.leaseHoldsAt(now) {
		return true
	}
	p.host.leaseEnded(p)
	return false
}

func (p *partition) Ignored(ctx context.Context, n int, err error) {
	p.timed()
	if n == 0 { // the function has failed before it asked for an event
		p.leave()
		p.yieldTurn()
	}
	p.count.Ignored.Add(int64(n))
	p.log.WarnContext(ctx, "error ignored", "events", n, "err", err, "help", help.ErrorIgnored)
}

// end begins the end: the consumer gets no more.
func (p *partition) beginEnd() {
	p.life.endingIt.Do(func() { close(p.life.ending) })
	p.buffer.Close()
}

// lose ends the ownership at once: it may have another owner.
func (p *partition) lose() (first bool) {
	if p.life.over.Swap(true) {
		return false
	}
	p.cancel(ErrLost)
	close(p.life.gone)
	p.beginEnd()
	return true
}

// unlocking says that the lock is gone by our own doing.
func (p *partition) unlocking() bool { return p.life.freeing.Load() }

func (p *partition) hasEnded() bool {
	select {
	case <-p.life.ended:
		return true
	default:
		return false
	}
}

func (p *partition) isLost() bool { return p.life.over.Load() }

// flush waits until every ack is confirmed; false if the ownership is lost before.
func (p *partition) flush() bool {
	for {
		if _, _, unacked := p.buffer.Held(); unacked == 0 {
			return !p.isLost()
		}
		p.host.flushAcks()
		select {
		case <-p.life.gone:
			return false
		case <-p.buffer.Ready():
		}
	}
}
