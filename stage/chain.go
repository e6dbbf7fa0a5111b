package stage

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/runnel-go/runnel/internal/delayqueue"
	"github.com/runnel-go/runnel/internal/retryqueue"
	istage "github.com/runnel-go/runnel/internal/stage"
)

const (
	// conflictsAtOnce is how often in a row a visit begins anew because others have saved its entity.
	conflictsAtOnce = 5
	// Then it waits.
	leastWait, mostWait = 100 * time.Millisecond, 5 * time.Second

	// storeWait is how long a visit waits, uncharged, when the Store of an external set does not load
	// its entity.
	storeWait = time.Second
)

// A taken visit runs. value and missing are what the Store of an external set has of its entity; begun is
// one that no take has brought, but another visit of its chain.
type taken struct {
	istage.Visit
	value          any
	missing, begun bool
	early          *earlyCall // nil: its Func was not called yet
}

// A chain runs the visits of one entity, one behind the other, in a goroutine of its own. The owner's mu
// guards waiting and runs.
type chain struct {
	o       *owner
	id      string
	waiting []taken
	runs    *taken

	now      entity
	failures map[string]failure // of the entity's visits, by stage
	own      map[string]bool    // stages whose visits the chain has settled: it knows better than a take
	unsure   int64              // and does not, as of this number: a visit was gone, which may have ended when a reply was lost; 0: it does
	vain     *taken             // its Func was called early, and it did not begin; changed under mu
	in       bool               // it may call functions of the user; changed under mu
}

// An entity is what a chain knows of its entity.
type entity struct {
	version int64 // 0: not known, or there is none
	passes  string
	payload string
	value   any // decoded, until a function was given it; nil: it is not
}

// run runs visits until none waits.
func (c *chain) run() {
	c.o.enter(&c.in)
	c.runOn()
}

// runOn is run behind its beginning. A function that ends the goroutine has failed; another one goes on.
func (c *chain) runOn() {
	var v *taken
	defer func() {
		if v != nil {
			c.o.running.Go(func() {
				(&turn{chain: c, v: v, s: c.o.set.by[v.Stage]}).fail(errGoexit, retryqueue.ReasonFailed)
				c.o.giveBack(v.Stage, 1)
				c.runOn()
			})
		}
	}()
	in := c.in
	for v = c.o.next(c); v != nil; v = c.o.next(c) {
		if in {
			c.adopt(v)
			c.visit(v)
			in = c.in
		} else if v.early != nil {
			<-v.early.done
			v.early.end()
		}
		c.o.giveBack(v.Stage, 1)
		c.awaitVain()
	}
	if in { // the chain may be another goroutine's by now
		c.o.inside.Done()
	}
}

// commit commits the end of a visit. It returns nil if the ownership ended before; then the chain may call no
// function any more, and nothing comes of the visit: the server may have been silent.
func (c *chain) commit(e *istage.End) *istage.Ended {
	if !c.in {
		return nil
	}
	c.o.leave(&c.in)
	ended := c.o.commit(e)
	if c.o.enter(&c.in); !c.in {
		return nil
	}
	return ended
}

// adopt takes over what a take has brought. A visit looks at the newest of what the takes of its chain
// brought, and never at less: another visit may have looked at the entity before it was changed.
func (c *chain) adopt(v *taken) {
	if v.begun {
		return
	}
	if c.unsure > 0 && v.Number > c.unsure { // its take was sent since
		c.unsure, c.now, c.failures = 0, entity{}, map[string]failure{}
		clear(c.own)
	}
	if v.missing {
		c.now = entity{}
	} else if v.Entity.Version > c.now.version {
		c.now = entity{v.Entity.Version, v.Entity.Passes, v.Entity.Payload, v.value}
		if v.value != nil {
			c.now.passes = c.o.recent.of(c.id)
		}
	}
	if v.Failures == "" && len(c.failures) == 0 {
		return
	}
	found, err := failuresOf(v.Failures)
	if err != nil {
		c.o.log.Warn("failures of visits are not readable", "entity", c.id, "err", err)
	}
	for stage := range c.own {
		if f, there := c.failures[stage]; there {
			found[stage] = f
		} else {
			delete(found, stage)
		}
	}
	c.failures = found
}

// A turn is one visit of a chain while it runs.
type turn struct {
	*chain
	v *taken
	s *stage // nil: a touch

	begins *taken // the next one of the chain, which has a place: what is committed next may begin it
}

// beginning returns the beginning of a visit to a stage right behind this one. ok is false where it has to
// wait: one begins already, or there is no place.
func (t *turn) beginning(s *stage) (_ istage.Settlement, ok bool) {
	if t.begins != nil || !t.o.own.Open(s.name) || !s.places.one() {
		return istage.Settlement{}, false
	}
	v := istage.Visit{Stage: s.name, ID: t.id, At: delayqueue.Millis(t.o.own.Now()), Number: t.o.own.Number()}
	t.begins = &taken{Visit: v, begun: true}
	return istage.Settlement{Stage: s.name, What: istage.Begins, Due: istage.At(time.UnixMilli(v.At)), Text: strconv.FormatInt(v.Number, 10)}, true
}

// unbegun gives the place back of a visit that has not begun.
func (t *turn) unbegun() {
	if t.begins != nil {
		t.o.giveBack(t.begins.Stage, 1)
		t.begins = nil
	}
}

// visit runs a visit, again while others save its entity meanwhile.
func (c *chain) visit(v *taken) {
	t := &turn{chain: c, v: v, s: c.o.set.by[v.Stage]}
	if v.early != nil {
		defer v.early.end()
		<-v.early.done
	}
	if c.unsure > 0 { // a take that is sent from now on says what is known of it
		t.putBack()
		return
	}
	if c.failures[v.Stage].Crashes >= lonely {
		end, ok := c.o.own.Isolate(c.o.ctx)
		if !ok {
			t.putBack()
			return
		}
		defer end()
		if !t.alone() {
			return
		}
	}
	gate := v.Stage
	if t.s == nil {
		gate = ""
	}
	if v.early == nil {
		end, ok := c.o.own.Begin(gate)
		if !ok {
			t.putBack()
			return
		}
		defer end()
	}
	defer t.unbegun()
	for n := 0; t.try(); n++ {
		t.unbegun()
		if n == conflictsAtOnce {
			t.settle(conflict, istage.Settlement{Stage: v.Stage, What: istage.Waits, Due: istage.In(leastWait + rand.N(mostWait-leastWait))})
			return
		}
		if n > 0 && !c.o.own.Live() {
			t.putBack()
			return
		}
	}
}

// alone notes that the visit runs alone: only a crash that comes then may be its death, since what waits for its
// turn counts as running, too. It reports whether the visit runs.
func (t *turn) alone() bool {
	alone := istage.Settlement{Stage: t.v.Stage, What: istage.Alone, Due: istage.At(time.UnixMilli(t.v.At)), Text: strconv.FormatInt(t.v.Number, 10)}
	ended := t.commit(&istage.End{ID: t.id, Number: t.v.Number, Settle: []istage.Settlement{alone}})
	if ended != nil && ended.Outcome != istage.OK {
		t.unsure = t.o.own.Number()
	}
	return t.in && t.unsure == 0
}

// putBack lets the visit wait again, uncharged: nothing was done.
func (t *turn) putBack() { t.commit(waitAgain(&t.v.Visit)) }

// try runs the visit once, and reports whether to begin anew, since the entity has changed meanwhile.
func (t *turn) try() (again bool) {
	if early := t.v.early; early != nil {
		t.v.early = nil
		return t.made(early.Result, early.made, early.err)
	}
	value, err := t.value()
	switch {
	case !t.in:
		return false
	case errors.Is(err, ErrNotFound):
		t.settle(gone, t.ended())
		return false
	case errors.As(err, new(*loadError)):
		t.o.log.Warn("entity not loaded", "stage", named(t.v.Stage), "entity", t.id, "err", err)
		t.settle(failed, istage.Settlement{Stage: t.v.Stage, What: istage.Waits, Due: istage.In(storeWait + rand.N(storeWait))})
		return false
	case err != nil:
		t.fail(err, retryqueue.ReasonDecode)
		return false
	case t.s == nil:
		t.touch(value)
		return false
	}
	wants, err := t.s.wants(value)
	if err != nil {
		t.fail(err, retryqueue.ReasonFailed)
		return false
	}
	if !wants {
		t.settle(untouched, t.ended())
		return false
	}
	return t.made(t.call(t.context(), value))
}

// failure is what is known of the visit's failures; those before its death do not count.
func (t *turn) failure() failure {
	if f := t.failures[t.v.Stage]; !f.Dead {
		return f
	}
	return failure{}
}

// value returns the entity as it is stored: ErrNotFound, a *loadError, or the codec's error.
func (t *turn) value() (any, error) {
	if t.now.value != nil {
		value := t.now.value
		t.now.value = nil // a function may change it
		return value, nil
	}
	if t.o.set.external == nil && t.now.version != 0 {
		return t.o.set.decode(t.id, t.now.payload)
	}
	if t.v.missing && t.o.set.external != nil {
		t.v.missing = false
		return nil, ErrNotFound
	}
	external := t.o.set.external != nil
	if !external {
		t.o.leave(&t.in) // Redis may be silent
	}
	found, err := t.o.set.get(t.o.calls, t.o.partition, t.id)
	if !external {
		t.o.enter(&t.in)
	}
	if err != nil {
		return nil, err
	}
	if external {
		found.passes = t.o.recent.of(t.id)
	}
	t.now = found
	if found.value != nil {
		t.now.value = nil
		return found.value, nil
	}
	return t.o.set.decode(t.id, found.payload)
}

// ended is what becomes of a visit that ends well.
func (t *turn) ended() istage.Settlement {
	if _, failed := t.failures[t.v.Stage]; failed {
		return istage.Settlement{Stage: t.v.Stage, What: istage.Recovers}
	}
	return istage.Settlement{Stage: t.v.Stage, What: istage.Ends}
}

// after is what becomes of the visit, and of those that are wanted, after a Result.
func (t *turn) after(r Result, wanted []istage.Settlement) []istage.Settlement {
	all := append([]istage.Settlement{t.ended()}, wanted...)
	if r.again.wanted {
		all = append(all, istage.Settlement{Stage: t.v.Stage, What: istage.Puts, Due: r.again.due(t.o.own.Now())})
	}
	return all
}

// settle commits the end of the visit without a change of the entity.
func (t *turn) settle(as result, all ...istage.Settlement) {
	t.end(&istage.End{Settle: all}, as)
}

// end commits an End of the visit, and notes what it made of the entity and its failures.
func (t *turn) end(e *istage.End, as result) istage.Outcome {
	e.ID, e.Number, e.Version = t.id, t.v.Number, t.now.version
	var begins *taken
	if e.Has(istage.Begins) {
		begins = t.begins
		t.o.join(t.chain, begins)
	}
	ended := t.commit(e)
	if ended == nil {
		ended = &istage.Ended{}
	}
	switch {
	case begins == nil:
	case ended.Outcome == istage.Begun:
		t.begins = nil
	default:
		t.o.part(t.chain, begins)
		if begins.early != nil {
			t.begins = nil
		}
		if ended.Outcome != istage.OK && ended.Outcome != istage.Conflict {
			t.o.doubt() // it may have begun, and the reply was lost
			t.o.own.Wake()
		}
	}
	switch {
	case ended.Outcome == "":
		t.now = entity{}
		return ""
	case ended.Outcome == istage.Conflict:
		t.o.set.counted(t.v.Stage, conflict)
		t.now = entity{ended.Found.Version, ended.Found.Passes, ended.Found.Payload, nil}
		return ended.Outcome
	case ended.Outcome == istage.Gone:
		as, t.now, t.unsure = gone, entity{}, t.o.own.Number()
	case e.Mode == istage.Put:
		t.now = entity{ended.Version, e.Passes, e.Payload, nil}
	case e.Mode == istage.Remove || e.Mode == istage.Forget:
		t.now = entity{}
	}
	t.o.set.counted(t.v.Stage, as)
	for _, s := range e.Settle {
		if t.own[s.Stage] = true; s.What == istage.Recovers {
			delete(t.failures, s.Stage)
		}
	}
	return ended.Outcome
}

// errID is the error of an entity whose ID is not what it is stored under.
func errID(stored, is string) error {
	return fmt.Errorf("the ID of the value is %q, it is stored under %q: the ID must be a function of the value alone, which no stage changes", is, stored)
}
