package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/rows"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/rebalance"
)

// A member is an executor under one executor ID, and the Owner of its coordinator.
type member struct {
	*executor
	id, group string
	began     int64

	coord      *rebalance.Coordinator
	ownerships *ownerships
	claims     *claims
	releases   *releaser
	heartbeat  *heartbeat
	leases     *leaseWatch
	course     course
	fetch      *fetcher
	acks       *ackers
	logBatch   *logBatch

	ctx    context.Context // ends with the member
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // consumers, and what ends ownerships
}

func newMember(x *executor) *member {
	id := store.NewExecutorID()
	m := &member{
		executor: x, id: id, group: store.GroupName(x.p.Name, id), began: monotime.Now(),
		ownerships: newOwnerships(), claims: newClaims(id, x.p),
	}
	m.releases, m.heartbeat, m.leases = &releaser{m}, newHeartbeat(m), newLeaseWatch(m)
	m.course, m.fetch, m.acks = byGroup{m}, newFetcher(m), newAckers(m)
	if x.p.ByPosition {
		m.course = byPosition{m}
	}
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

// run joins, owns its assigned partitions, and returns when ctx ends or after a surprise. Its
// goroutines have ended then, except user functions that do not return.
func (m *member) run(ctx context.Context) error {
	m.ctx, m.cancel = context.WithCancelCause(ctx)
	defer m.cancel(nil)
	// These serve the drain too, which begins when ctx ends.
	services, stop := context.WithCancel(context.WithoutCancel(ctx))
	var serving sync.WaitGroup
	defer serving.Wait()
	defer stop()
	if err := m.heartbeat.first(ctx); err != nil {
		m.fetch.close()
		return err
	}
	serving.Go(func() { m.heartbeat.run(services) })
	serving.Go(func() { m.leases.run(services) })
	serving.Go(func() { m.fetch.run(services) })
	serving.Go(func() { m.acks.run(services) })
	serving.Go(func() { m.logBatch.run(services) })
	if slices.ContainsFunc(m.p.Tables, func(t rows.Config) bool { return t.Ends }) {
		serving.Go(func() { m.expire(services) })
	}

	err := m.coord.Run(m.ctx)
	if stuck := m.ownerships.stuckPartitions(); len(stuck) > 0 {
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

// remove leaves the membership after a leave that failed, since others left as well. The
// heartbeat has ended by now, so another member removes this one if remove fails.
func (m *member) remove() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx), removePatience)
	defer cancel()
	if err := rebalance.Remove(ctx, m.w.client.Group(m.p.Stream, m.p.Name), rebalance.Salt(m.p.Stream, m.p.Name), m.id); err != nil {
		m.log.Warn("member not removed", "member", m.id, "err", err)
	}
}

// removePatience bounds how long that takes.
const removePatience = 3 * time.Second

// surprise ends the member after an event that may leave commands under its ID behind.
func (m *member) surprise(err error) { m.cancel(fmt.Errorf("%w: %w", errRejoin, err)) }

// Acquire is one try to own a partition; see rebalance.Owner.
func (m *member) Acquire(ctx context.Context, partition int, foreign time.Duration) error {
	place := m.w.client.Partition(m.p.Stream, m.p.Name, partition)
	number := m.claims.of(partition)
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
	if m.claims.note(ctx, partition, err) {
		m.logBatch.note(slog.LevelError, notTaken, partition, err)
	}
	switch {
	case err == nil:
		m.claims.settle(partition)
		m.history.saw(partition, pos.Epoch)
		m.own(newPartition(m, place, number, pos, leaseDeadline(sent, m.p.Lease)), pos)
		return nil
	case errors.Is(err, store.ErrHeld):
		return fmt.Errorf("%w: %w", rebalance.ErrHeld, err)
	case errors.Is(err, store.ErrFenced):
		// The lock expired between the two, or the group was destroyed since.
		m.undo(place, number)
		m.claims.settle(partition)
	case errors.Is(err, redisconn.ErrWrongType) && !locked: // another type is under the key: no lock was left
	case ctx.Err() != nil || errors.Is(err, redisconn.ErrWrongType) || errors.Is(err, store.ErrGarbled):
		m.undo(place, number)
	}
	return err
}

// Release hands a partition over; see rebalance.Owner. It blocks until the
// user's function returns, however long that takes, unless the member ends.
func (m *member) Release(_ context.Context, partition int) error {
	if p := m.ownerships.leave(partition); p != nil {
		m.releases.end(p)
	} else if number, ok := m.claims.pending(partition); ok { // a failed try may have left a lock
		m.undo(m.w.client.Partition(m.p.Stream, m.p.Name, partition), number)
		m.claims.settle(partition)
	}
	return nil
}

// undo gives back a lock that a try may have left.
func (m *member) undo(place store.Partition, number store.Claim) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx), time.Second)
	defer cancel()
	if err := m.w.client.Abandon(ctx, place, number); err != nil {
		m.logBatch.note(slog.LevelWarn, notReleased, place.Number, err)
	}
}

func (m *member) own(p *partition, pos store.Takeover) {
	m.ownerships.add(p)
	m.leases.expect(p.lease.end.Load())
	p.log.Debug("takeover", "member", m.id, "committed", pos.Committed, "found", pos.Found)
	m.logBatch.note(slog.LevelInfo, gained, p.keys.Number, nil)
	m.forgot(p.keys.Number, pos.Forgotten)
	if pos.Missed > 0 {
		p.missed(pos.Missed)
	}
	m.w.rules.admit(m, p)
	m.wg.Go(func() { m.consume(p, pos.Quarantine) })
	if p.staging != nil {
		m.wg.Go(func() { m.load(p) })
	}
	if p.outbox != nil {
		m.wg.Go(p.outbox.run)
	}
	m.fetch.add(p)
	m.w.forwarder.add(p)
	if p.life.isEnding() { // lost already, before fetcher and forwarder knew of it
		m.fetch.remove(p)
		m.w.forwarder.remove(p)
	}
}

// consume runs the user's side until the ownership ends.
func (m *member) consume(p *partition, q *store.Quarantine) {
	defer close(p.life.finished)
	defer p.processed.flush()
	defer p.leave()
	defer p.staging.forget()
	defer p.cancel(nil)
	if q != nil {
		p.count.Quarantined.Add(1)
		p.log.Error("quarantined partition gained", "event", entryid.EventID(p.keys.Number, q.Event), "err", q.Reason, "help", help.Quarantine)
		p.source.standStill()
		return
	}
	// The lease may end while a suspect of the partition waits to be alone. Other partitions
	// would then wait for its turn for ever.
	defer p.source.turn.yield()
	returned := false
	defer func() {
		if !returned {
			m.w.halt(fmt.Errorf("stream %s partition %d processor %s: the function ended its goroutine (runtime.Goexit)", m.p.Stream, p.keys.Number, m.p.Name))
		}
	}()
	err := m.p.Consume(p.ctx, p.input(&p.source))
	returned = true
	switch {
	case err != nil:
		p.source.parked.halted(err)
		m.w.halt(err)
	case !p.life.isEnding():
		// The function saw that the lease had expired. A late reply to a refresh must not keep
		// a partition that has no consumer any more.
		m.releases.lose(p, errLeaseEnded)
	}
}
