package rebalance

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/help"
)

// A run is one Run of a Coordinator: it carries out the machine's actions. Its methods are
// for Run's goroutine, except those marked below.
type run struct {
	*Coordinator
	work    context.Context // ends with Run's ctx, and when the machine has ended
	cancel  context.CancelFunc
	lasting context.Context // Run's ctx without its end
	tries   map[int]context.CancelFunc
	wg      sync.WaitGroup
}

func newRun(ctx context.Context, c *Coordinator) *run {
	r := &run{Coordinator: c, lasting: context.WithoutCancel(ctx), tries: map[int]context.CancelFunc{}}
	r.work, r.cancel = context.WithCancel(ctx)
	return r
}

// step gives the machine an input and begins the actions that follow.
func (r *run) step(in input) {
	r.mu.Lock()
	actions := in(r.machine, time.Now())
	r.mu.Unlock()
	for _, a := range actions {
		r.perform(a)
	}
}

func (r *run) ended() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machine.phase == ended
}

func (r *run) arm(t *time.Timer) {
	r.mu.Lock()
	at := r.machine.deadline()
	r.mu.Unlock()
	if at.IsZero() {
		t.Stop()
	} else {
		t.Reset(time.Until(at))
	}
}

func (r *run) finish() error {
	r.cancel()
	r.wg.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running, r.inbox = false, nil
	return r.machine.err
}

// perform begins an action. Actions that take time get a goroutine.
func (r *run) perform(a action) {
	switch a.verb {
	case doAcquire:
		r.acquire(a.partition, a.limit)
	case doCancel:
		r.tries[a.partition]()
	case doRelease:
		r.wg.Go(func() { r.release(a.partition) })
	case doJoin:
		r.wg.Go(r.join)
	case doLoad:
		r.wg.Go(r.load)
	case doAlive:
		r.wg.Go(func() { r.look(a.executors, a.limit) })
	case doReap:
		r.wg.Go(func() { r.reap(a.executors) })
	case doLeave:
		r.wg.Go(r.leave)
	case doAnnounce:
		r.wg.Go(func() { r.announce(a.message) })
	case doAssigned:
		r.log.Info("assigned", "generation", a.message.Generation, "partitions", Ranges(a.partitions))
		if r.cfg.OnAssign != nil {
			r.cfg.OnAssign(a.message.Generation, a.partitions)
		}
	case doWarn:
		r.log.Warn("redis error, retrying", "op", "membership", "err", a.err, "help", help.RedisErrors)
	}
}

func (r *run) acquire(p int, foreign time.Duration) {
	ctx, cancel := context.WithCancel(r.work)
	r.tries[p] = cancel
	r.wg.Go(func() {
		err := r.cfg.Owner.Acquire(ctx, p, foreign)
		cancel()
		r.post(func(m *machine, now time.Time) []action { return m.acquired(now, p, err) })
	})
}

// The methods below run in goroutines of their own and use only the constant fields of r.

func (r *run) release(p int) {
	if err := r.cfg.Owner.Release(r.lasting, p); err != nil {
		r.log.Warn("partition not released", "partition", p, "err", err)
	}
	r.post(func(m *machine, now time.Time) []action { return m.released(now, p) })
}

func (r *run) announce(msg Message) {
	ctx, cancel := context.WithTimeout(r.lasting, announceTimeout)
	defer cancel()
	if err := r.cfg.Store.Announce(ctx, msg); err != nil {
		r.log.Debug("control message not sent", "kind", msg.Kind.String(), "partition", msg.Partition, "err", err)
	}
}

func (r *run) load() {
	value, err := r.cfg.Store.Load(r.work)
	r.post(func(m *machine, now time.Time) []action { return m.loaded(now, value, err) })
}

func (r *run) look(ids []string, atMost time.Duration) {
	life, err := r.cfg.Store.Alive(r.work, ids, atMost)
	r.post(func(m *machine, now time.Time) []action { return m.alive(now, life, err) })
}

func (r *run) join() {
	value, err := r.change(r.work, func(ctx context.Context, g Group) (Group, error) {
		if g.has(r.cfg.ID) {
			return g, nil // an earlier try of unknown outcome came through
		}
		if err := g.vacant(ctx, r.cfg.Store); err != nil {
			return g, err
		}
		dead, err := r.dead(ctx, g, g.IDs())
		if err != nil {
			return g, err
		}
		g = g.without(dead)
		if len(g.Executors) > 0 && g.Partitions != r.cfg.Partitions {
			return g, &partitionsError{Stored: g.Partitions, Own: r.cfg.Partitions}
		}
		e := r.cfg.Executor
		e.JoinedAt = time.Now()
		return g.Join(r.cfg.ID, e, r.cfg.Partitions, r.cfg.Salt), nil
	})
	r.post(func(m *machine, now time.Time) []action { return m.joined(now, value, err) })
}

func (r *run) reap(ids []string) {
	var dead []string
	value, err := r.change(r.work, func(ctx context.Context, g Group) (Group, error) {
		members := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !g.has(id) })
		var err error
		dead, err = r.dead(ctx, g, members)
		return g.Leave(r.cfg.Salt, dead...), err
	})
	if err == nil && len(dead) > 0 {
		r.log.Info("dead members removed", "members", dead)
	}
	r.post(func(m *machine, now time.Time) []action { return m.reaped(now, dead, value, err) })
}

func (r *run) leave() {
	ctx, cancel := context.WithTimeout(r.lasting, leaveTimeout)
	defer cancel()
	var generation int64
	_, err := r.change(ctx, func(_ context.Context, g Group) (Group, error) {
		generation = 0
		next := g.Leave(r.cfg.Salt, r.cfg.ID)
		if g.has(r.cfg.ID) {
			generation = next.Generation
		}
		return next, nil
	})
	r.post(func(m *machine, now time.Time) []action { return m.left(now, generation, err) })
}

func (r *run) dead(ctx context.Context, g Group, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	life, err := r.cfg.Store.Alive(ctx, ids, g.Expiry())
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { _, ok := life[id]; return ok }), err
}

// change changes the stored membership, and returns the value that is stored then.
func (r *run) change(ctx context.Context, fn func(context.Context, Group) (Group, error)) ([]byte, error) {
	c, err := change(ctx, r.cfg.Store, 1, fn)
	if err == nil && len(c.forgotten) > 0 {
		r.log.Info("pins and drains dropped", "workers", c.forgotten)
	}
	return c.value, err
}
