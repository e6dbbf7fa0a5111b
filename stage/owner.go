package stage

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/outage"
	istage "github.com/runnel-go/runnel/internal/stage"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/worker"
)

const (
	// lastWords is how long an owner tries to store what became of visits once the contexts of their
	// functions have ended.
	lastWords = 500 * time.Millisecond

	// stuckAfter is how long after that end a function is told to be stuck: before its worker, which waits
	// a second, may end.
	stuckAfter = 750 * time.Millisecond
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

	mu      sync.Mutex
	chains  map[string]*chain // by ID
	ended   map[string]*chain // since the take under way was sent, which may bring less than they know
	taking  bool
	due     map[string]bool // stages, and the touch, of which visits are known to be due
	blocked map[string]bool // those that wait for a place
	asked   time.Time       // when all were asked
	cleared time.Time       // when all places were asked for again
	unknown bool            // something may run that is in no chain
	running sync.WaitGroup  // chains
	inside  sync.WaitGroup  // those that may call functions of the user
	closed  bool            // no more of them

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
	o := &owner{
		set: s, own: own, ctx: ctx, calls: calls, partition: n, log: own.Log(),
		chains: map[string]*chain{}, ended: map[string]*chain{}, due: map[string]bool{}, blocked: map[string]bool{},
	}
	context.AfterFunc(ctx, func() { time.AfterFunc(stuckAfter, o.tellStuck) })
	return o
}

// tellStuck logs functions that have not returned although their context has ended.
func (o *owner) tellStuck() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.chains {
		if v := cmp.Or(c.vain, c.runs); c.in && v != nil {
			o.log.Error("function is stuck", "op", "release", "stage", named(v.Stage), "entity", c.id, "after", stuckAfter, "help", help.FunctionStuck)
		}
	}
}

// run works until the ownership ends and every chain has.
func (o *owner) run() {
	defer func() {
		o.running.Wait()
		o.recount(0) // the next owner would charge what runs
		o.running.Wait()
	}()
	known := false // what runs in Redis
	look := func() (time.Duration, error) {
		if !known {
			if err := o.recover(); err != nil {
				return 0, err
			}
			known = true
		}
		return o.take()
	}
	o.own.Run(o.ctx, "visits", look, func(err error) bool {
		if o.over(err) {
			return true
		}
		o.doubt()
		return false
	})
}

// end waits until no function of the user runs, and lets none begin. Calls that are under way may go on until
// their connections give up: nothing comes of them.
func (o *owner) end() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.inside.Wait()
}

// enter sets in where functions of the user may be called, until leave.
func (o *owner) enter(in *bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if *in = !o.closed; *in {
		o.inside.Add(1)
	}
}

func (o *owner) leave(in *bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*in = false
	o.inside.Done()
}

// over reports whether an error, or the end of the ownership, means that nothing more is taken.
func (o *owner) over(err error) bool {
	if o.calls.Err() != nil {
		return true
	}
	if errors.Is(err, store.ErrFenced) {
		o.set.count.fenced.Add(1)
	}
	return o.own.Over(o.ctx, err)
}

// doubt notes that something may run in Redis that no chain has: a reply was lost.
func (o *owner) doubt() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unknown = true
}

// begin hands taken visits to the chains of their entities.
func (o *owner) begin(visits []istage.Visit) {
	all := make([]taken, len(visits))
	for i, v := range visits {
		all[i].Visit = v
	}
	if o.set.external != nil && len(all) > 0 {
		o.load(all)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, v := range all {
		c := o.chains[v.ID]
		if c == nil {
			if c = o.ended[v.ID]; c == nil {
				c = &chain{o: o, id: v.ID, failures: map[string]failure{}, own: map[string]bool{}}
			}
			o.chains[v.ID] = c
			o.running.Go(c.run)
		}
		c.waiting = append(c.waiting, v)
	}
	o.taking = false
	clear(o.ended)
}

// next returns the next visit of a chain, nil if it has none and ends.
func (o *owner) next(c *chain) *taken {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.runs = nil
	if len(c.waiting) == 0 {
		if delete(o.chains, c.id); o.taking {
			o.ended[c.id] = c
		}
		return nil
	}
	c.runs, c.waiting = &c.waiting[0], c.waiting[1:]
	return c.runs
}

// join has a visit run in its chain that the End under way begins; part takes it back.
func (o *owner) join(c *chain, v *taken) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := len(c.waiting)
	if v.early != nil { // what its Func made is of the entity as it is now
		at = 0
	}
	c.waiting = slices.Insert(c.waiting, at, *v)
}

func (o *owner) part(c *chain, v *taken) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.waiting = slices.DeleteFunc(c.waiting, func(one taken) bool { return one.Number == v.Number && one.Stage == v.Stage })
	if v.early != nil {
		c.vain = v
	}
}

// waitingIn returns the stages whose visits wait in a chain.
func (o *owner) waitingIn(c *chain) map[string]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(c.waiting) == 0 {
		return nil
	}
	has := map[string]bool{}
	for _, v := range c.waiting {
		has[v.Stage] = true
	}
	return has
}

// commit commits the end of a visit, again while its outcome is unknown: under one ownership that does no
// harm. It returns nil if the ownership ended before.
func (o *owner) commit(e *istage.End) *istage.Ended {
	var retry *outage.Outage
	for {
		ended, err := o.set.owners.End(o.calls, o.partition, o.own.Fence(), e)
		switch {
		case o.calls.Err() != nil:
			return nil
		case err == nil:
			if retry != nil {
				retry.Recovered()
			}
			waits := e.Has(istage.Waits, istage.Fails, istage.Puts)
			for _, s := range e.Settle {
				runs := s.What == istage.Begins && ended.Outcome == istage.OK // by a take: this one waits behind it
				if runs || s.What == istage.Puts && s.Due == istage.In(0) {
					o.isDue(s.Stage)
				}
				waits = waits || runs
			}
			if o.ends.Add(1); o.passed.Swap(false) || waits {
				o.own.Wake()
			}
			return ended
		case errors.Is(err, store.ErrFenced):
			o.over(err)
			return nil
		}
		if retry == nil {
			retry = outage.New(o.log, "ends of visits", nil)
		}
		retry.Wait(o.calls, err)
	}
}

// load loads the entities of visits from the Store of an external set. What it does not load now, each
// visit will load for itself.
func (o *owner) load(visits []taken) {
	ids := make([]string, len(visits))
	for i, v := range visits {
		ids[i] = v.ID
	}
	slices.Sort(ids)
	in := false
	if o.enter(&in); !in {
		return
	}
	defer o.leave(&in)
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
