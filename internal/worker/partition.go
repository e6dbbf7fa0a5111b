package worker

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/prefetch"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// A partition is one ownership of one partition by one executor ID.
//
// Its life: acquired → (ending: no more is delivered) → consumer finished →
// acks flushed → unlocked. A loss may come at any time. From then on nothing is
// delivered, and nothing is sent to Redis but the release of what may be ours.
type partition struct {
	host   host
	acks   ackSink
	keys   store.Partition
	claim  store.Claim
	epoch  int64
	expiry time.Duration
	since  int64 // by monotime: the lock was obtained before
	log    *slog.Logger
	count  *Counters

	buffer *prefetch.Buffer
	pauseGate
	calls  calls // of extensions
	lease  lease
	reader atomic.Pointer[reader] // nil: it is not read

	connections int64 // of the reader when it last read; by position, when its server was known to be where the buffer is

	// By position.
	commits int64    // that were stored; of the acker
	staging *staging // nil unless the processor is atomic
	outbox  *outbox  // nil unless there are slots that commits do not reach
	reach   reach

	life      lifecycle
	processed tally

	ctx    context.Context // the handler's
	cancel context.CancelCauseFunc
	source partitionSource // of the consumer
	beat   beatState       // of heartbeats
}

// A reach is how many entries behind the committed position may be begun: as it is wanted, and as Redis knows.
type reach struct{ wanted, known atomic.Int64 }

// A host is the member that owns a partition. Its methods must not block, and may be called
// concurrently.
type host interface {
	leaseEnded(*partition)    // the lease is over: the partition is lost
	endCause() error          // why partitions end that are not lost
	retake(*partition)        // end the ownership and own the partition again
	repeat(*partition, error) // the same, after Redis has forgotten something
}

// An ackSink sends the acks of partitions. Its methods must not block, and may be called
// concurrently.
type ackSink interface {
	mark(*partition) // there are acks to send
	hurry()          // and no time to wait for more
}

// A beatState is the state of heartbeats about a partition; only they use it.
type beatState struct {
	gaps          gapCounter
	missing       string // an event that the last refresh did not find pending
	stored        checkpoint
	notifications int64 // how often operators have changed something, as of the last refresh
}

// newPartition returns the ownership that a takeover has begun.
func newPartition(m *member, place store.Partition, number store.Claim, pos store.Takeover, lease int64) *partition {
	p := &partition{
		host: m.releases, acks: m.acks, keys: place, claim: number, epoch: pos.Epoch, expiry: m.p.Lease,
		log: m.log.With("partition", place.Number, "epoch", pos.Epoch), count: m.count,
		since: monotime.Now(),
	}
	p.init()
	p.lease.end.Store(lease)
	p.reach.wanted.Store(number.Reach)
	p.reach.known.Store(number.Reach)
	p.beat.gaps.seen, p.beat.stored.calm, p.beat.notifications = pos.Lost, true, pos.OperatorVersion
	p.buffer = prefetch.New(prefetch.Config{
		Capacity: m.p.Prefetch, Adaptive: m.p.Adapt, MaxBytes: m.p.PrefetchBytes, Committed: pos.Committed, Read: max(pos.Read-pos.Lost, -1), ByPosition: m.p.ByPosition,
		Live: p.lease.holdsAt, MayRun: p.enter, Wanted: func() { m.fetch.wakeReader(p) },
		Lost: func(id string) {
			m.count.Lost.Add(1)
			p.log.Error("event lost", "event", entryid.EventID(p.keys.Number, id), "help", help.EventsLost)
			m.acks.mark(p)
		},
	})
	p.changed, p.opened = m.heartbeat.soon, p.buffer.Signal
	p.held.Store(true) // until the rules were read, see rulesKeeper
	p.calls.init(m.p.Gates)
	p.source.given, p.source.turn.of = pos.Delivered, m.w.isolation
	p.source.timing = timing{to: m.latencies.partition(place.Number), behind: &m.latencies.behind, running: &p.running}
	p.source.restore(m, pos)
	p.prepare(m, pos)
	p.outbox = newOutbox(m, p)
	own := context.WithValue(context.WithoutCancel(m.ctx), ownershipKey{}, &Ownership{p: p, m: m, again: newSignal()})
	p.ctx, p.cancel = context.WithCancelCause(own)
	return p
}

// init sets the parts that every partition has.
func (p *partition) init() {
	p.life.init()
	p.processed.to = &p.count.Processed
	p.source.p, p.source.turn.by, p.source.ends.s = p, p, &p.source
}

// input is p, as its consumer sees it, with src to take from.
func (p *partition) input(src Source) Input {
	in := Input{Partition: p.keys.Number, Epoch: p.epoch, Ending: p.life.ending, Source: src}
	if p.staging != nil {
		in.Rows = p.staging.rows
	}
	return in
}

func (p *partition) leaseLength() time.Duration { return p.expiry }
func (p *partition) retry()                     { p.buffer.Interrupt() }

// leaseRequest asks for the refresh of the lease.
func (p *partition) leaseRequest() store.LeaseRequest {
	committed, read := p.buffer.Checkpoint()
	claim := p.claim
	claim.Reach = p.reach.wanted.Load()
	return store.LeaseRequest{Partition: p.keys, Claim: claim, Committed: committed, Read: read}
}

// receive adds entries that were read, and returns the size of the largest. After a failover to
// a replica that was behind, Redis delivers entries again. Then receive adds none, and the
// partition is taken over once more, from the position in Redis. So entries ascend under one
// epoch, and none is processed twice under it.
func (p *partition) receive(entries []redisconn.Entry) (largest int64) {
	if p.life.retaken.Load() || len(entries) == 0 {
		return 0 // the entries are pending, for the next ownership
	}
	if first := entries[0].ID; entryid.Compare(first, p.buffer.Last()) <= 0 {
		if p.life.isEnding() {
			return 0 // pending, too: the next owner begins with the position in Redis
		}
		p.host.repeat(p, fmt.Errorf("%s was delivered again", first))
		return 0
	}
	return p.buffer.Push(entries)
}

// leaseValid reports whether the lease holds, and ends the ownership if not. Writes about a
// processed event use leaseValid, since Holds waits while the partition is paused.
func (p *partition) leaseValid() bool { return p.leaseValidAt(monotime.Now()) }

func (p *partition) leaseValidAt(now int64) bool {
	if p.lease.holdsAt(now) {
		return true
	}
	p.host.leaseEnded(p)
	return false
}

// beginEnd begins the end: the consumer gets no more entries.
func (p *partition) beginEnd() {
	p.life.beginEnd()
	p.buffer.Close()
}

// lose ends the ownership at once, since the partition may have another owner.
func (p *partition) lose() (first bool) {
	p.cancel(ErrLost) // before the others that lose it at the same time go on: see Gate.Holds
	if p.life.over.Swap(true) {
		return false
	}
	close(p.life.gone)
	p.beginEnd()
	return true
}

// flush waits until every ack is confirmed, and reports false if the ownership is lost before.
func (p *partition) flush() bool {
	for {
		if _, _, unacked := p.buffer.Held(); unacked == 0 && !p.staging.waits() {
			return !p.life.isLost()
		}
		if p.staging.stuck() && p.life.isEnding() {
			return false
		}
		p.acks.hurry()
		select {
		case <-p.life.gone:
			return false
		case <-p.buffer.Ready():
		}
	}
}

// awaitRoom waits until another iteration may be done. A loss is seen by what follows.
func (p *partition) awaitRoom() {
	if p.staging.full() {
		p.flush()
	}
	for p.outbox.full() && !p.life.isEnding() {
		doze(p.buffer.Ready(), -1)
	}
}

// missed counts and logs events that were lost.
func (p *partition) missed(n int64) {
	p.count.Lost.Add(n)
	committed, _ := p.buffer.Checkpoint()
	p.log.Error("events lost", "events", n, "committed", committed, "help", help.EventsLost)
}
