package stage

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/outage"
	istage "github.com/runnel-go/runnel/internal/stage"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/worker"
)

const (
	takenAtOnce   = 128 // by one script
	touchesAtOnce = 32  // of one partition
	mostStages    = takenAtOnce - touchesAtOnce
	bytesAtOnce   = 4 << 20 // of entities

	// lastWords is how long an owner tries to store what became of visits once the contexts of their
	// functions have ended.
	lastWords = 500 * time.Millisecond
)

// An owner runs the visits of one partition for one ownership: it takes those that are due, and gives
// each entity's to its chain.
//
// It sleeps until the next one is due, or until a script puts an earlier one: that script wakes it, because
// the take that found nothing has stored until when it sleeps. A script wakes no owner that is awake; so
// after a take that found some, it takes again, until it finds none.
type owner struct {
	set       *set
	own       *worker.Ownership
	ctx       context.Context // of the functions
	calls     context.Context // of what is stored: lasts a little longer
	log       *slog.Logger
	partition int
	again     chan struct{} // asks for a take; one token

	mu      sync.Mutex
	chains  map[string]*chain // by ID
	blocked map[string]bool   // stages, and the touch, that wait for a place
	unknown bool              // something may run that is in no chain
	running sync.WaitGroup    // chains

	// What is put while it runs is passed over by takes: they are repeated when something has ended.
	passed atomic.Bool
	ends   atomic.Int64

	recent recent
}

func newOwner(ctx context.Context, s *set, own *worker.Ownership) *owner {
	n, _ := own.At()
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), worker.ErrLost) {
			cancel()
		} else {
			time.AfterFunc(lastWords, cancel)
		}
	})
	return &owner{
		set: s, own: own, ctx: ctx, calls: calls, partition: n, log: own.Log(),
		again: make(chan struct{}, 1), chains: map[string]*chain{}, blocked: map[string]bool{},
	}
}

// wake asks for a take. It never blocks.
func (o *owner) wake() {
	select {
	case o.again <- struct{}{}:
	default:
	}
}

// run works until the ownership ends and every chain has.
func (o *owner) run() {
	defer func() {
		o.running.Wait()
		o.recount(0) // the next owner would charge what runs
		o.running.Wait()
	}()
	retry := outage.New(o.log, "visits", nil)
	for {
		var err error
		if !o.within(func() { err = o.recover() }) {
			return
		}
		if err == nil {
			break
		}
		if o.over(err) {
			return
		}
		retry.Wait(o.ctx, err)
	}
	retry.Recovered()
	for look := false; ; {
		changed := o.own.Changed()
		next, err := o.take(look)
		switch {
		case err == nil:
			retry.Recovered()
		case o.over(err):
			return
		default:
			o.doubt()
			retry.Wait(o.ctx, err)
			continue
		}
		live, early := o.sleep(next, changed)
		if !live {
			return
		}
		look = !early && next == o.own.Expiry()
	}
}

// over reports whether an error, or the end of the ownership, means that nothing more is taken.
func (o *owner) over(err error) bool {
	if errors.Is(err, store.ErrFenced) {
		o.set.count.fenced.Add(1)
		o.own.Lost(err)
		return true
	}
	select {
	case <-o.own.Ending():
		return true
	default:
		return o.ctx.Err() != nil
	}
}

// doubt notes that something may run in Redis that no chain has: a reply was lost.
func (o *owner) doubt() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unknown = true
}

// sleep waits until there may be something to take, at most for next. It reports whether the ownership
// lives, and whether something has happened before.
func (o *owner) sleep(next time.Duration, changed <-chan struct{}) (live, early bool) {
	timer := time.NewTimer(next)
	defer timer.Stop()
	select {
	case <-o.own.Ending():
		return false, true
	case <-o.ctx.Done():
		return false, true
	case <-changed:
	case <-o.again:
	case <-timer.C:
		return true, false
	}
	return true, true
}

// take takes what is due, until nothing is, and returns how long the owner may sleep: until the next one
// is due, and no longer than its lease, since a failover may forget that it sleeps. With look, nothing is
// expected to be due: it asks without reserving places, which others may need, and takes only if it is wrong.
func (o *owner) take(look bool) (next time.Duration, err error) {
	for {
		asks := o.asks(look)
		if len(asks) == 0 {
			return o.own.Expiry(), nil
		}
		ends := o.ends.Load()
		t := &istage.Take{Partition: o.partition, Fence: o.own.Fence(), Number: o.own.Number(), Asks: asks, Sleep: true, MaxBytes: bytesAtOnce}
		o.set.count.takes.Add(1)
		if !o.within(func() { o.set.owners.Take(o.calls, t) }) {
			for _, a := range asks {
				o.giveBack(a.Stage, a.Most)
			}
			return 0, o.calls.Err()
		}
		taken := map[string]int{}
		for _, v := range t.Visits {
			taken[v.Stage]++
		}
		for _, a := range asks {
			o.giveBack(a.Stage, a.Most-taken[a.Stage])
		}
		if t.Err != nil {
			return 0, t.Err
		}
		if t.Passed > 0 {
			if o.passed.Store(true); o.ends.Load() != ends { // it may have been one of them
				o.wake()
			}
		}
		o.begin(t.Visits)
		if look && t.Next == 0 {
			look = false
			continue
		}
		if len(t.Visits) == 0 {
			o.recount(t.Running)
			if t.Next < 0 {
				return o.own.Expiry(), nil
			}
			return min(t.Next, o.own.Expiry()), nil
		}
	}
}

// asks reserves places, unless it is for a look, and returns how many visits of each stage may be taken.
func (o *owner) asks(look bool) (asks []istage.Ask) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if look { // an owner that was told of a place may not have used it
		clear(o.blocked)
	}
	each := (takenAtOnce - touchesAtOnce) / max(len(o.set.stages), 1)
	ask := func(stage, gate string, places *places, most int) {
		if o.blocked[stage] || !o.open(gate) {
			return
		}
		if !look {
			o.blocked[stage] = true // unless there is a place
			if most = places.take(most, func() bool { return o.unblock(stage, gate) }); most == 0 {
				return
			}
			delete(o.blocked, stage)
		} else {
			most = 0
		}
		asks = append(asks, istage.Ask{Stage: stage, Most: most})
	}
	ask(istage.Touch, "", &o.set.touches, touchesAtOnce)
	for _, s := range o.set.stages {
		ask(s.name, s.name, &s.places, each)
	}
	return asks
}

// open reports whether visits of a stage may begin.
func (o *owner) open(gate string) bool {
	end, ok := o.own.Begin(gate)
	if ok {
		end()
	}
	return ok
}

// unblock notes that a stage has a place, and reports whether the owner can use it.
func (o *owner) unblock(stage, gate string) bool {
	o.mu.Lock()
	delete(o.blocked, stage)
	o.mu.Unlock()
	o.wake()
	return o.open(gate)
}

// giveBack gives reserved places back.
func (o *owner) giveBack(stage string, n int) {
	if s := o.set.by[stage]; s != nil {
		s.places.give(n)
	} else {
		o.set.touches.give(n)
	}
}

// begin hands taken visits to the chains of their entities.
func (o *owner) begin(visits []istage.Visit) {
	all := make([]taken, len(visits))
	for i, v := range visits {
		all[i].Visit = v
	}
	if o.set.external != nil {
		o.load(all)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, v := range all {
		c := o.chains[v.ID]
		if c == nil {
			c = &chain{o: o, id: v.ID, failures: map[string]failure{}, own: map[string]bool{}}
			o.chains[v.ID] = c
			o.running.Go(c.run)
		}
		c.waiting = append(c.waiting, v)
	}
}

// next returns the next visit of a chain. Without any the chain has ended.
func (o *owner) next(c *chain) (v taken, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.runs = nil
	if len(c.waiting) == 0 {
		delete(o.chains, c.id)
		return v, false
	}
	v, c.waiting = c.waiting[0], c.waiting[1:]
	c.runs = &v
	return v, true
}

// waitingIn returns the stages whose visits wait in a chain.
func (o *owner) waitingIn(c *chain) map[string]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	has := map[string]bool{}
	for _, v := range c.waiting {
		has[v.Stage] = true
	}
	return has
}

// commit commits the end of a visit, again while its outcome is unknown: under one ownership that does no
// harm. ok is false if the ownership ended before.
func (o *owner) commit(e istage.End) (ended istage.Ended, ok bool) {
	retry := outage.New(o.log, "ends of visits", nil)
	for o.calls.Err() == nil {
		var ended istage.Ended
		var err error
		if !o.within(func() { ended, err = o.set.owners.End(o.calls, o.partition, o.own.Fence(), e) }) {
			break
		}
		switch {
		case err == nil:
			retry.Recovered()
			if o.ends.Add(1); e.Puts() || o.passed.Swap(false) {
				o.wake()
			}
			return ended, true
		case errors.Is(err, store.ErrFenced):
			o.over(err)
			return ended, false
		}
		retry.Wait(o.calls, err)
	}
	return ended, false
}

// within makes a call, and reports false if the time for calls ends before it answers: then nothing of it
// may be used, and the function returns in time though the server is silent.
func (o *owner) within(call func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	select {
	case <-done:
		return true
	case <-o.calls.Done():
		return false
	}
}

// load loads the entities of visits from the Store of an external set. What it does not load now, each
// visit will load for itself.
func (o *owner) load(visits []taken) {
	if len(visits) == 0 {
		return
	}
	ids := make([]string, len(visits))
	for i, v := range visits {
		ids[i] = v.ID
	}
	slices.Sort(ids)
	found, err := o.set.external.load(o.ctx, slices.Compact(ids))
	if err != nil {
		return
	}
	for i := range visits {
		v := &visits[i]
		e, there := found[v.ID]
		v.missing, v.value, v.Entity.Version = !there, e.value, e.version
	}
}
