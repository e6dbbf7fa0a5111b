package runneltest

import (
	"slices"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/sets"
	"github.com/runnel-go/runnel/internal/verdict"
	"github.com/runnel-go/runnel/stage"
)

// A StageVisit is one call of a stage's function.
type StageVisit struct {
	Stage   string
	Attempt int
	Result  string        // "untouched", "updated", "deleted", "failed", "dead" or "dropped"
	At      time.Duration // since the entity was stored, the waits counted as if they had been waited
	Again   time.Duration // when the next attempt is due, or the visit that the function asked for, counted as At; 0: none
	Err     error
}

// A Settled is an entity when no stage wants anything of it any more.
type Settled[T any] struct {
	Value   T
	Deleted bool
	Visits  []StageVisit // in the order in which they ran

	rec *recorder
}

func (s *Settled[T]) recorded() *recorder { return s.rec }

// mostVisits is how many visits Settle plays.
const mostVisits = 1000

// Settle stores an entity in memory and runs the stages of its set over it, until none wants it and no visit
// waits. There is no Redis, and nothing to wait for: a visit that is due later runs at once, with stage.Now
// as it will be then. Stages that are due at the same time run in the order of their registration; a worker
// may choose another one, and comes to the same end if your stages do.
//
// Functions run in goroutines of their own, one at a time. What they send is recorded, see Sent. Methods of
// sets return an error to them. The Store of an external set is not called.
//
// Fatal to t are a value that cannot be stored, stages that undo each other, and an entity that still has
// visits after a thousand: play a stage that asks for itself for ever with Visit. Plays of one app take turns.
func Settle[T any](t testing.TB, s *stage.Set[T], value T) *Settled[T] {
	t.Helper()
	p := playerOf(t, s)
	defer p.record()()
	p.store(value)
	p.ask("")
	for len(p.due) > 0 {
		name := p.next()
		p.now = p.due[name]
		delete(p.due, name)
		if len(p.visits) == mostVisits {
			t.Fatalf("runneltest: set %s: visits without end, the last one of stage %s", s.Name(), name)
		}
		if p.visit(name); p.gone {
			break
		}
	}
	return settled[T](p)
}

func settled[T any](p *player) *Settled[T] { return &Settled[T]{p.value.(T), p.gone, p.visits, p.rec} }

// Visit is Settle of one visit: it calls the function of one stage with the value, once, whether the stage
// wants it or not, and asks no other.
func Visit[T any](t testing.TB, s *stage.Set[T], stage string, value T) *Settled[T] {
	t.Helper()
	p := playerOf(t, s)
	if !slices.Contains(p.Stages, stage) {
		t.Fatalf("runneltest: set %s has no stage %q; it has %q", s.Name(), stage, p.Stages)
	}
	defer p.record()()
	p.store(value)
	p.call(stage)
	return settled[T](p)
}

// A player plays one entity.
type player struct {
	*sets.Player
	t          testing.TB
	rec        *recorder
	set        string
	began, now time.Time

	value   any
	version int64
	gone    bool
	passes  string
	due     map[string]time.Time
	failed  map[string]int // attempts
	dead    map[string]bool
	visits  []StageVisit
}

func playerOf[T any](t testing.TB, s *stage.Set[T]) *player {
	t.Helper()
	of, ok := sets.Play(s)
	if !ok {
		t.Fatalf("runneltest: %T is no set", s)
	}
	now := time.Now()
	return &player{Player: of, t: t, set: s.Name(), began: now, now: now, due: map[string]time.Time{}, failed: map[string]int{}, dead: map[string]bool{}}
}

// record takes what the functions send until end is called.
func (p *player) record() (end func()) {
	p.t.Helper()
	view := appview.Of(p.App)
	p.rec = newRecorder(p.t, view)
	return view.Intercept(p.rec)
}

func (p *player) store(value any) {
	p.t.Helper()
	stored, err := p.Stored(value)
	if err != nil {
		p.t.Fatalf("runneltest: set %s: %v", p.set, err)
	}
	p.keep(stored)
}

// keep has a value stored under a new version.
func (p *player) keep(stored any) {
	p.value, p.version = stored, p.version+1
	clear(p.dead)
}

// ask puts a visit of each stage, but one, that wants the entity and does not wait after a failure.
func (p *player) ask(but string) {
	p.t.Helper()
	for _, name := range p.Stages {
		if name == but || p.failed[name] > 0 || p.dead[name] {
			continue
		}
		wants, err := p.Wants(name, p.value)
		if err != nil {
			p.t.Fatalf("runneltest: set %s: when of stage %s: %v", p.set, name, err)
		}
		if wants {
			p.put(name, p.now)
		}
	}
}

func (p *player) put(name string, at time.Time) {
	if before, there := p.due[name]; !there || at.Before(before) {
		p.due[name] = at
	}
}

// next returns the stage whose visit is due first.
func (p *player) next() (first string) {
	for _, name := range p.Stages {
		if at, there := p.due[name]; there && (first == "" || at.Before(p.due[first])) {
			first = name
		}
	}
	p.due[first] = latest(p.due[first], p.now)
	return first
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// visit runs a visit if its stage still wants the entity.
func (p *player) visit(name string) {
	p.t.Helper()
	wants, err := p.Wants(name, p.value)
	if err != nil {
		p.t.Fatalf("runneltest: set %s: when of stage %s: %v", p.set, name, err)
	}
	if !wants {
		delete(p.failed, name)
		return
	}
	r := p.call(name)
	if r.Err != nil || p.gone {
		return
	}
	if r.Result == "updated" {
		but, slow := "", false
		if !r.Again.IsZero() {
			but = name
		}
		if p.passes, slow = p.Pass(p.passes, p.now); slow {
			p.t.Fatalf("runneltest: set %s: stages change the entity without end, the last one is %s", p.set, name)
		}
		p.ask(but)
	}
}

// call calls the function of a stage, and notes what became of the visit.
func (p *player) call(name string) sets.Called {
	p.t.Helper()
	v := StageVisit{Stage: name, Attempt: p.failed[name] + 1, At: p.now.Sub(p.began)}
	stored, err := p.Stored(p.value) // a copy
	if err != nil {
		p.t.Fatalf("runneltest: set %s: %v", p.set, err)
	}
	r := p.Call(p.t.Context(), sets.Call{Stage: name, Value: stored, Version: p.version, Attempt: v.Attempt, Due: p.now})
	if r.Err == nil && r.Result == "updated" {
		r.Value, r.Err = p.Stored(r.Value)
	}
	if v.Result, v.Err = r.Result, r.Err; r.Err != nil {
		v.Result, r.Again = p.fail(name, v.Attempt, r.Err)
	} else {
		delete(p.failed, name)
		switch r.Result {
		case "updated":
			p.keep(r.Value)
		case "deleted":
			p.gone = true
		}
	}
	if !r.Again.IsZero() {
		v.Again = r.Again.Sub(p.began)
		p.put(name, r.Again)
	}
	p.visits = append(p.visits, v)
	return r
}

// fail returns what became of a visit that failed, and when the next attempt is due, if there is one.
func (p *player) fail(name string, attempt int, err error) (result string, again time.Time) {
	said, retry := verdict.Of(err), p.Retry(name)
	switch {
	case said.Kind == verdict.Drop:
		delete(p.failed, name)
		return "dropped", again
	case said.Kind == verdict.Dead || attempt >= retry.Max:
		delete(p.failed, name)
		p.dead[name] = true
		return "dead", again
	}
	wait := retry.Wait(attempt)
	if said.Kind == verdict.Retry {
		wait = said.After
	}
	p.failed[name] = attempt
	return "failed", p.now.Add(wait)
}
