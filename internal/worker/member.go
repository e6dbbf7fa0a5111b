package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/prefetch"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/rules"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/rebalance"
)

// A member is an executor under one executor ID. It is the Owner of its
// coordinator.
type member struct {
	*executor
	id, group, heartbeatKey, membership string

	coord *rebalance.Coordinator
	fetch *fetcher
	acks  *ackers
	began int64

	logBatch *logBatch

	ctx    context.Context // ends with the member
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // consumers, and what ends ownerships

	mu         sync.Mutex
	partitions map[int]*partition  // owned, ending ones too
	openClaims map[int]store.Claim // numbers of tries whose outcome is open
	next       uint64
	leaving    map[int]bool // the coordinator has asked for the release
	stuck      []int        // partitions whose function did not return
	broken     map[int]error

	seen     []byte        // the membership as the last refresh read it; of heartbeat
	early    chan struct{} // a refresh is wanted before its time
	leases   *leaseTimer
	inEffect rules.Generations // as they were last seen in full effect; guarded by mu
}

func newMember(x *executor) *member {
	id := store.NewExecutorID()
	k := x.w.client.Keys()
	m := &member{
		executor: x, id: id, group: store.GroupName(x.p.Name, id), heartbeatKey: k.Beat(x.p.Stream, x.p.Name, id),
		membership: k.Membership(x.p.Stream, x.p.Name), began: monotime.Now(),
		partitions: map[int]*partition{}, openClaims: map[int]store.Claim{}, leaving: map[int]bool{}, broken: map[int]error{},
		early: make(chan struct{}, 1), leases: newLeaseTimer(),
	}
	m.fetch, m.acks = newFetcher(m), newAckers(m)
	m.logBatch = newLogBatch(m.log.With("member", id))
	m.coord = rebalance.NewCoordinator(rebalance.Config{
		ID: id, Executor: rebalance.Executor{Worker: x.w.name, Expiry: x.p.Lease}, Partitions: x.p.Partitions,
		Salt: rebalance.Salt(x.p.Stream, x.p.Name), JoinDelay: x.p.JoinDelay,
		Store: x.w.client.Group(x.p.Stream, x.p.Name), Owner: m, Logger: m.log.With("member", id),
		OnAssign: func(int64, []int) { m.count.Rebalances.Add(1) },
	})
	return m
}

// lasted reports whether the member was more than a failed attempt.
func (m *member) lasted() bool { return monotime.Now()-m.began > int64(m.p.Lease) }

// run joins, owns what it is assigned, and ends with ctx or a surprise. What it
// starts has ended when it returns, but for functions of the user that do not.
func (m *member) run(ctx context.Context) error {
	m.ctx, m.cancel = context.WithCancelCause(ctx)
	defer m.cancel(nil)
	// These serve the drain too, which begins when ctx ends.
	services, stop := context.WithCancel(context.WithoutCancel(ctx))
	var serving sync.WaitGroup
	defer serving.Wait()
	defer stop()
	if err := m.firstHeartbeat(ctx); err != nil {
		m.fetch.close()
		return err
	}
	serving.Go(func() { m.heartbeat(services) })
	serving.Go(func() { m.watchLeases(services) })
	serving.Go(func() { m.fetch.run(services) })
	serving.Go(func() { m.acks.run(services) })
	serving.Go(func() { m.logBatch.run(services) })

	err := m.coord.Run(m.ctx)
	if stuck := m.stuckPartitions(); len(stuck) > 0 {
		return fmt.Errorf("partitions %s: the function did not return within %v and a second more; their events are not acked, their locks expire", rebalance.Ranges(stuck), m.p.Grace)
	}
	// The services first: they start what wg counts.
	stop()
	serving.Wait()
	m.wg.Wait()
	if m.coord.Crowded() {
		m.remove()
	}
	if cause := context.Cause(m.ctx); err == nil && ctx.Err() == nil {
		return cause
	}
	return err
}

// remove leaves the membership where that did not work before, for others left as well. The
// heartbeat is gone by now: what does not work here, another member does.
func (m *member) remove() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx), removePatience)
	defer cancel()
	if err := rebalance.Remove(ctx, m.w.client.Group(m.p.Stream, m.p.Name), rebalance.Salt(m.p.Stream, m.p.Name), m.id); err != nil {
		m.log.Warn("member not removed", "member", m.id, "err", err)
	}
}

// removePatience bounds how long that takes.
const removePatience = 3 * time.Second

// surprise ends the member: something happened to it that may leave
// commands of its ID behind.
func (m *member) surprise(err error) { m.cancel(fmt.Errorf("%w: %w", errRejoin, err)) }

// Acquire is one try to own a partition; see rebalance.Owner.
func (m *member) Acquire(ctx context.Context, partition int, foreign time.Duration) error {
	place := m.w.client.Partition(m.p.Stream, m.p.Name, partition)
	number := m.claim(partition)
	sent := monotime.Now()
	err := m.w.client.Lock(ctx, place, number, m.p.Lease, foreign)
	var pos store.Takeover
	locked := err == nil
	if locked {
		pos, err = m.w.client.Takeover(ctx, place, number, m.p.Start, m.history.largest(partition))
	}
	if err == nil && monotime.Now() >= leaseDeadline(sent, m.p.Lease) {
		err = errTooLate
	}
	m.note(ctx, partition, err)
	switch {
	case err == nil:
		m.unclaim(partition)
		m.history.saw(partition, pos.Epoch)
		m.own(place, number, pos, leaseDeadline(sent, m.p.Lease))
		return nil
	case errors.Is(err, store.ErrHeld):
		return fmt.Errorf("%w: %w", rebalance.ErrHeld, err)
	case errors.Is(err, store.ErrFenced):
		// The lock expired between the two, or the group was destroyed since.
		m.undo(place, number)
		m.unclaim(partition)
	case errors.Is(err, redisconn.ErrWrongType) && !locked: // the lock is none, and nothing was left in it
	case ctx.Err() != nil || errors.Is(err, redisconn.ErrWrongType) || errors.Is(err, store.ErrGarbled):
		m.undo(place, number)
	}
	return err
}

// undo gives back a lock that a try may have left.
func (m *member) undo(place store.Partition, number store.Claim) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx), time.Second)
	defer cancel()
	if err := m.w.client.Abandon(ctx, place, number); err != nil {
		m.logBatch.note(slog.LevelWarn, notReleased, place.Number, err)
	}
}

// claim returns the ownership of a try. It stays the same until its outcome is
// known: if the reply to Lock got lost, the lock may hold its value already, or
// will.
func (m *member) claim(partition int) store.Claim {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.openClaims[partition]
	if !ok {
		m.next++
		t = store.Claim{Executor: m.id, Number: m.next, Expiry: m.p.Lease}
		m.openClaims[partition] = t
	}
	return t
}

func (m *member) unclaim(partition int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.openClaims, partition)
}

// note remembers and logs, once, what keeps a partition from being owned. A try
// that was called off says nothing.
func (m *member) note(ctx context.Context, partition int, err error) {
	if ctx.Err() != nil {
		m.mu.Lock()
		delete(m.broken, partition) // no longer ours to take over
		m.mu.Unlock()
		return
	}
	if errors.Is(err, store.ErrHeld) {
		return
	}
	m.mu.Lock()
	before := m.broken[partition]
	if err == nil {
		delete(m.broken, partition)
	} else {
		m.broken[partition] = err
	}
	m.mu.Unlock()
	if err != nil && before == nil {
		m.logBatch.note(slog.LevelError, notTaken, partition, err)
	}
}

// own starts the ownership.
func (m *member) own(place store.Partition, number store.Claim, pos store.Takeover, lease int64) {
	p := &partition{
		keys: place, claim: number, epoch: pos.Epoch, given: pos.Delivered, expiry: m.p.Lease,
		log:  m.log.With("partition", place.Number, "epoch", pos.Epoch),
		host: m, count: m.count, isolation: m.w.isolation,
	}
	p.life.init()
	p.lease.Store(lease)
	p.beat.gaps.seen, p.beat.stored.calm = pos.Lost, true
	p.since = monotime.Now()
	p.buffer = prefetch.New(prefetch.Config{
		Capacity: m.p.Prefetch, Adaptive: m.p.Adapt, MaxBytes: m.p.PrefetchBytes, Committed: pos.Committed, Read: max(pos.Read-pos.Lost, -1),
		Live: p.leaseHoldsAt, MayRun: p.enter, Wanted: func() { m.fetch.wakeReader(p) },
		Lost: func(id string) {
			m.count.Lost.Add(1)
			p.log.Error("event lost", "event", entryid.EventID(p.keys.Number, id), "help", help.EventsLost)
			m.acks.mark(p)
		},
	})
	p.changed, p.opened = m.refreshSoon, p.buffer.Signal
	p.timing = timing{to: m.latencies.partition(place.Number), behind: &m.latencies.behind, running: &p.running}
	p.held.Store(true) // until the rules were read, see rulesKeeper
	m.restore(p, pos)
	p.ctx, p.cancel = context.WithCancelCause(context.WithoutCancel(m.ctx))
	m.mu.Lock()
	m.partitions[place.Number] = p
	delete(m.leaving, place.Number)
	m.mu.Unlock()
	m.leases.expect(lease)
	p.log.Debug("takeover", "member", m.id, "committed", pos.Committed, "found", pos.Found)
	m.logBatch.note(slog.LevelInfo, gained, place.Number, nil)
	m.forgot(place.Number, pos.Forgotten)
	if pos.Missed > 0 {
		p.missed(pos.Missed)
	}
	m.w.rules.admit(m, p)
	m.wg.Go(func() { m.consume(p, pos.Quarantine) })
	m.fetch.add(p)
	m.w.forwarder.add(p)
	if p.isEnding() { // lost already; they did not know it yet
		m.fetch.remove(p)
		m.w.forwarder.remove(p)
	}
}

// consume runs the user's side until the ownership ends.
func (m *member) consume(p *partition, q *store.Quarantine) {
	defer close(p.life.finished)
	defer p.countProcessed()
	defer p.leave()
	defer p.cancel(nil)
	if q != nil {
		p.count.Quarantined.Add(1)
		p.log.Error("quarantined partition gained", "event", entryid.EventID(p.keys.Number, q.Event), "err", q.Reason, "help", help.Quarantine)
		p.standStill()
		return
	}
	// Its turn, too: the lease may end while a suspect of it waits to be alone, and
	// other partitions would wait for that for ever.
	defer p.yieldTurn()
	returned := false
	defer func() {
		if !returned {
			m.w.halt(fmt.Errorf("stream %s partition %d processor %s: the function ended its goroutine (runtime.Goexit)", m.p.Stream, p.keys.Number, m.p.Name))
		}
	}()
	err := m.p.Consume(p.ctx, p.ownership(p))
	returned = true
	switch {
	case err != nil:
		p.halted(err)
		m.w.halt(err)
	case !p.isEnding():
		// The function saw that the lease had expired. A refresh that is answered only now
		// must not keep a partition that has no consumer any more.
		m.lose(p, errLeaseEnded)
	}
}

// A member is the host of its partitions.
func (m *member) markDirty(p *partition)  { m.acks.mark(p) }
func (m *member) flushAcks()              { m.acks.hurry() }
func (m *member) leaseEnded(p *partition) { m.lose(p, errLeaseEnded) }

// lose ends an ownership that may have another owner, and the member with it. One
// that has ended holds nothing that could be lost.
func (m *member) lose(p *partition, err error) {
	if p.hasEnded() || !p.lose() {
		return
	}
	m.count.LostPartitions.Add(1)
	m.takeOut(p)
	m.logBatch.note(slog.LevelWarn, lost, p.keys.Number, err)
	m.surprise(fmt.Errorf("partition %d: %w", p.keys.Number, err))
}
