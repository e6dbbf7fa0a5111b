package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/prefetch"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/rules"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/rebalance"
)

// An executor is this worker's instance of one processor. It lives through
// incarnations: each has an executor ID of its own and is a member of the
// processor's membership. A surprising loss ends an incarnation, for commands of
// unknown outcome may still be under way under its ID.
type executor struct {
	w     *Worker
	p     *Processor
	log   *slog.Logger
	count *Counters

	latencies latencyBook
	aside     time.Duration // how long it stood aside last; see standAside

	mu      sync.Mutex
	current *incarnation // nil between two
	blind   error        // why it stands aside, nil if it does not

	history history
}

func newExecutor(w *Worker, p *Processor) *executor {
	return &executor{
		w: w, p: p, log: w.log.With("stream", p.Stream, "processor", p.Name), count: new(Counters),
		latencies: latencyBook{on: w.cfg.Latencies, of: map[int]*Latencies{}},
	}
}

// errTooLate is a takeover that waited too long for replicas or a reply. The next try
// begins with the lock; where the partition is another worker's meanwhile, Release gives it back.
var errTooLate = errors.New("the takeover was confirmed when its lease was over already")

var errLeaseEnded = errors.New("the lease ended: no refresh reached Redis in time")

// errRejoin is the cause of an incarnation's end when the executor goes on.
var errRejoin = errors.New("rejoin under a new executor ID")

// run takes part until ctx ends, or an error that trying again does not mend.
func (x *executor) run(ctx context.Context) error {
	pace := outage.New(slog.New(slog.DiscardHandler), "rejoining", nil)
	retry := outage.New(x.log, "metadata", &x.count.Errors)
	for {
		i := newIncarnation(x)
		i.open(ctx)
		x.set(i)
		err := i.run(ctx)
		x.set(nil)
		rejoin := errors.Is(err, errRejoin) || errors.Is(err, rebalance.ErrAbsent)
		switch {
		case ctx.Err() != nil && (err == nil || rejoin):
			return nil
		case !rejoin:
			return x.wrap(err)
		}
		x.count.Rejoins.Add(1)
		x.log.Warn("rejoining under a new executor ID", "member", i.id, "err", err)
		if i.lasted() {
			pace.Recovered()
		}
		pace.Wait(ctx, err)
		if errors.Is(err, errNotReading) {
			x.standAside(ctx, i)
		}
		if err := x.w.ensure(ctx, x.p.Stream, retry); err != nil {
			return x.wrap(err)
		}
	}
}

func (x *executor) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("stream %s: processor %s: %w", x.p.Stream, x.p.Name, err)
}

func (x *executor) set(i *incarnation) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.current = i
}

func (x *executor) incarnation() *incarnation {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.current
}

// An incarnation is an executor under one executor ID. It is the Owner of its
// coordinator.
type incarnation struct {
	*executor
	id, group, beat, membership string

	coord *rebalance.Coordinator
	fetch *fetcher
	acks  *ackers
	began int64

	journal *journal

	ctx    context.Context // ends with the incarnation
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // consumers, and what ends tenures

	mu      sync.Mutex
	tenures map[int]*tenure      // owned, ending ones too
	claims  map[int]store.Tenure // numbers of tries whose outcome is open
	next    uint64
	leaving map[int]bool // the coordinator has asked for the release
	stuck   []int        // partitions whose function did not return
	broken  map[int]error

	seen     []byte        // the membership as the last refresh read it; of heartbeat
	early    chan struct{} // a refresh is wanted before its time
	lapses   *lapses
	inEffect rules.Generations // as they were last seen in full effect; guarded by mu
}

func newIncarnation(x *executor) *incarnation {
	id := store.NewExecutorID()
	k := x.w.client.Keys()
	i := &incarnation{
		executor: x, id: id, group: store.GroupName(x.p.Name, id), beat: k.Beat(x.p.Stream, x.p.Name, id),
		membership: k.Membership(x.p.Stream, x.p.Name), began: monotime.Now(),
		tenures: map[int]*tenure{}, claims: map[int]store.Tenure{}, leaving: map[int]bool{}, broken: map[int]error{},
		early: make(chan struct{}, 1), lapses: newLapses(),
	}
	i.fetch, i.acks = newFetcher(i), newAckers(i)
	i.journal = newJournal(i.log.With("member", id))
	i.coord = rebalance.NewCoordinator(rebalance.Config{
		ID: id, Executor: rebalance.Executor{Worker: x.w.name, Expiry: x.p.LockExpiry}, Partitions: x.p.Partitions,
		Salt: rebalance.Salt(x.p.Stream, x.p.Name), JoinDelay: x.p.JoinDelay,
		Store: x.w.client.Group(x.p.Stream, x.p.Name), Owner: i, Logger: i.log.With("member", id),
		OnAssign: func(generation int64, partitions []int) {
			i.count.Rebalances.Add(1)
			i.log.Debug("assigned", "member", id, "generation", generation, "partitions", rebalance.Ranges(partitions))
		},
	})
	return i
}

// lasted reports whether the incarnation was more than a failed attempt.
func (i *incarnation) lasted() bool { return monotime.Now()-i.began > int64(i.p.LockExpiry) }

// run joins, owns what it is assigned, and ends with ctx or a surprise. What it
// starts has ended when it returns, but for functions of the user that do not.
func (i *incarnation) run(ctx context.Context) error {
	i.ctx, i.cancel = context.WithCancelCause(ctx)
	defer i.cancel(nil)
	// These serve the drain too, which begins when ctx ends.
	services, stop := context.WithCancel(context.WithoutCancel(ctx))
	var serving sync.WaitGroup
	defer serving.Wait()
	defer stop()
	if err := i.firstBeat(ctx); err != nil {
		i.fetch.close()
		return err
	}
	serving.Go(func() { i.heartbeat(services) })
	serving.Go(func() { i.watchLeases(services) })
	serving.Go(func() { i.fetch.run(services) })
	serving.Go(func() { i.acks.run(services) })
	serving.Go(func() { i.journal.run(services) })

	err := i.coord.Run(i.ctx)
	if stuck := i.stuckPartitions(); len(stuck) > 0 {
		return fmt.Errorf("partitions %s: the function did not return within %v and a second more; their events are not acked, their locks expire", rebalance.Ranges(stuck), i.p.Grace)
	}
	// The services first: they start what wg counts.
	stop()
	serving.Wait()
	i.wg.Wait()
	if i.coord.Crowded() {
		i.remove()
	}
	if cause := context.Cause(i.ctx); err == nil && ctx.Err() == nil {
		return cause
	}
	return err
}

// remove leaves the membership where that did not work before, for others left as well. The
// heartbeat is gone by now: what does not work here, another member does.
func (i *incarnation) remove() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(i.ctx), removePatience)
	defer cancel()
	if err := rebalance.Remove(ctx, i.w.client.Group(i.p.Stream, i.p.Name), rebalance.Salt(i.p.Stream, i.p.Name), i.id); err != nil {
		i.log.Warn("not removed from the membership, another member does that", "member", i.id, "err", err)
	}
}

// removePatience bounds how long that takes.
const removePatience = 3 * time.Second

// surprise ends the incarnation: something happened to it that may leave
// commands of its ID behind.
func (i *incarnation) surprise(err error) { i.cancel(fmt.Errorf("%w: %w", errRejoin, err)) }

// Acquire is one try to own a partition; see rebalance.Owner.
func (i *incarnation) Acquire(ctx context.Context, partition int, foreign time.Duration) error {
	place := i.w.client.Place(i.p.Stream, i.p.Name, partition)
	number := i.claim(partition)
	sent := monotime.Now()
	err := i.w.client.Lock(ctx, place, number, i.p.LockExpiry, foreign)
	var pos store.Position
	locked := err == nil
	if locked {
		pos, err = i.w.client.Takeover(ctx, place, number, i.p.Start, i.history.largest(partition))
	}
	if err == nil && monotime.Now() >= leaseEnd(sent, i.p.LockExpiry) {
		err = errTooLate
	}
	i.note(ctx, partition, err)
	switch {
	case err == nil:
		i.unclaim(partition)
		i.history.saw(partition, pos.Epoch)
		i.own(place, number, pos, leaseEnd(sent, i.p.LockExpiry))
		return nil
	case errors.Is(err, store.ErrHeld):
		return fmt.Errorf("%w: %w", rebalance.ErrHeld, err)
	case errors.Is(err, store.ErrFenced):
		// The lock expired between the two, or the group was destroyed since.
		i.undo(place, number)
		i.unclaim(partition)
	case errors.Is(err, redisconn.ErrWrongType) && !locked: // the lock is none, and nothing was left in it
	case ctx.Err() != nil || errors.Is(err, redisconn.ErrWrongType) || errors.Is(err, store.ErrGarbled):
		i.undo(place, number)
	}
	return err
}

// undo gives back a lock that a try may have left.
func (i *incarnation) undo(place store.Place, number store.Tenure) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(i.ctx), time.Second)
	defer cancel()
	if err := i.w.client.Abandon(ctx, place, number); err != nil {
		i.journal.note(slog.LevelWarn, notReleased, place.Partition, err)
	}
}

// claim returns the tenure of a try. It stays the same until its outcome is
// known: if the reply to Lock got lost, the lock may hold its value already, or
// will.
func (i *incarnation) claim(partition int) store.Tenure {
	i.mu.Lock()
	defer i.mu.Unlock()
	t, ok := i.claims[partition]
	if !ok {
		i.next++
		t = store.Tenure{Executor: i.id, Number: i.next, Expiry: i.p.LockExpiry}
		i.claims[partition] = t
	}
	return t
}

func (i *incarnation) unclaim(partition int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.claims, partition)
}

// note remembers and logs, once, what keeps a partition from being owned. A try
// that was called off says nothing.
func (i *incarnation) note(ctx context.Context, partition int, err error) {
	if ctx.Err() != nil {
		i.mu.Lock()
		delete(i.broken, partition) // no longer ours to take over
		i.mu.Unlock()
		return
	}
	if errors.Is(err, store.ErrHeld) {
		return
	}
	i.mu.Lock()
	before := i.broken[partition]
	if err == nil {
		delete(i.broken, partition)
	} else {
		i.broken[partition] = err
	}
	i.mu.Unlock()
	if err != nil && before == nil {
		i.journal.note(slog.LevelError, notTaken, partition, err)
	}
}

// own starts the tenure.
func (i *incarnation) own(place store.Place, number store.Tenure, pos store.Position, lease int64) {
	t := &tenure{
		place: place, number: number, epoch: pos.Epoch, given: pos.Given, expiry: i.p.LockExpiry,
		log:    i.log.With("partition", place.Partition, "epoch", pos.Epoch),
		ending: make(chan struct{}), finished: make(chan struct{}), gone: make(chan struct{}), ended: make(chan struct{}),
		tell: i.acks.mark, hurryAcks: i.acks.hurry, count: i.count, alone: i.w.alone, worker: i.w.name,
	}
	t.lease.Store(lease)
	t.losses.seen, t.stored.calm = pos.Lost, true
	t.since = monotime.Now()
	t.buffer = prefetch.New(prefetch.Config{
		Capacity: i.p.Prefetch, Adaptive: i.p.Adapt, MaxBytes: i.p.PrefetchBytes, Committed: pos.Floor, Read: max(pos.Read-pos.Lost, -1),
		Live: t.holdsAt, MayRun: t.enter, Wanted: func() { i.fetch.kick(t) },
		Lost: func(id string) {
			i.count.Lost.Add(1)
			t.log.Error("event lost: it was deleted before it was processed", "event", entryid.EventID(t.place.Partition, id))
			i.acks.mark(t)
		},
	})
	t.changed, t.opened = i.hurry, t.buffer.Signal
	t.timing = timing{to: i.latencies.partition(place.Partition), behind: &i.latencies.behind, running: &t.running}
	t.held.Store(true) // until the rules were read, see rulesKeeper
	t.endCause = i.endCause
	t.lapse = func() { i.lose(t, errLeaseEnded) }
	i.keep(t, pos)
	t.ctx, t.cancel = context.WithCancelCause(context.WithoutCancel(i.ctx))
	i.mu.Lock()
	i.tenures[place.Partition] = t
	delete(i.leaving, place.Partition)
	i.mu.Unlock()
	i.lapses.expect(lease)
	t.log.Debug("partition gained", "member", i.id, "floor", pos.Floor, "found", pos.Found)
	i.journal.note(slog.LevelInfo, gained, place.Partition, nil)
	i.forgot(place.Partition, pos.Forgotten)
	if pos.Missed > 0 {
		t.missed(pos.Missed)
	}
	i.w.rules.admit(i, t)
	i.wg.Go(func() { i.consume(t, pos.Quarantine) })
	i.fetch.add(t)
	i.w.moves.add(t)
	if t.isEnding() { // lost already; they did not know it yet
		i.fetch.remove(t)
		i.w.moves.remove(t)
	}
}

// consume runs the user's side until the tenure ends.
func (i *incarnation) consume(t *tenure, q *store.Quarantine) {
	defer close(t.finished)
	defer t.countProcessed()
	defer t.leave()
	defer t.cancel(nil)
	if q != nil {
		t.count.Quarantined.Add(1)
		t.log.Error("partition is quarantined and processes nothing until an operator ends that with `processor resume`", "event", entryid.EventID(t.place.Partition, q.Event), "err", q.Reason)
		t.standStill()
		return
	}
	// Its turn, too: the lease may end while a suspect of it waits to be alone, and
	// other partitions would wait for that for ever.
	defer t.yield()
	returned := false
	defer func() {
		if !returned {
			i.w.halt(fmt.Errorf("stream %s partition %d processor %s: the function ended its goroutine (runtime.Goexit)", i.p.Stream, t.place.Partition, i.p.Name))
		}
	}()
	err := i.p.Consume(t.ctx, t)
	returned = true
	switch {
	case err != nil:
		t.halted(err)
		i.w.halt(err)
	case !t.isEnding():
		// It saw the lease over. A refresh that is answered only now must not
		// keep a partition that nobody processes any more.
		i.lose(t, errLeaseEnded)
	}
}

// lose ends a tenure that may have another owner, and the incarnation with it. One
// that has ended holds nothing that could be lost.
func (i *incarnation) lose(t *tenure, err error) {
	if t.hasEnded() || !t.lose() {
		return
	}
	i.count.LostPartitions.Add(1)
	i.part(t)
	i.journal.note(slog.LevelWarn, lost, t.place.Partition, err)
	i.surprise(fmt.Errorf("partition %d: %w", t.place.Partition, err))
}
