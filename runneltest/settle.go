package runneltest

import (
	"slices"
	"testing"
	"time"

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
	Err     error
}

// A Settled is an entity when no stage wants anything of it any more.
type Settled[T any] struct {
	Value   T
	Deleted bool
	Visits  []StageVisit // in the order in which they ran
}

// mostVisits is how many visits Settle plays.
const mostVisits = 1000

// Settle stores an entity in memory and runs the stages of its set over it, as a worker does, until none
// wants it and no visit waits. There is no Redis, and nothing to wait for: a visit that is due later runs
// at once, with stage.Now as it will be then. Stages that are due at the same time run in the order of
// their registration. Functions run in goroutines of their own, one at a time. A value that cannot be
// stored, stages that undo each other, and an entity that has still visits after a thousand are fatal to t.
func Settle[T any](t testing.TB, s *stage.Set[T], value T) *Settled[T] {
	t.Helper()
	p := playerOf(t, s)
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
	return &Settled[T]{p.value.(T), p.gone, p.visits}
}

// Visit is Settle of one visit: it calls the function of one stage with the value, once, whether the stage
// wants it or not, and asks no other.
func Visit[T any](t testing.TB, s *stage.Set[T], stage string, value T) *Settled[T] {
	t.Helper()
	p := playerOf(t, s)
	if !slices.Contains(p.Stages, stage) {
		t.Fatalf("runneltest: set %s has no stage %q; it has %q", s.Name(), stage, p.Stages)
	}
	p.store(value)
	p.call(stage)
	return &Settled[T]{p.value.(T), p.gone, p.visits}
}

// A player plays one entity.
type player struct {
	*sets.Player
	t          testing.TB
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

func (p *player) store(value any) {
	p.t.Helper()
	stored, err := p.Stored(value)
	if err != nil {
		p.t.Fatalf("runneltest: set %s: %v", p.set, err)
	}
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
	but := ""
	if !r.Again.IsZero() {
		p.put(name, r.Again)
		but = name
	}
	if r.Result == "updated" {
		var slow bool
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
	if v.Result, v.Err = r.Result, r.Err; r.Err != nil {
		v.Result = p.fail(name, v.Attempt, r.Err)
	} else {
		delete(p.failed, name)
		switch r.Result {
		case "updated":
			p.store(r.Value)
		case "deleted":
			p.gone = true
		}
	}
	p.visits = append(p.visits, v)
	return r
}

// fail puts the next attempt, if there is one, and returns what became of this one.
func (p *player) fail(name string, attempt int, err error) string {
	said, retry := verdict.Of(err), p.Retry(name)
	switch {
	case said.Kind == verdict.Drop:
		delete(p.failed, name)
		return "dropped"
	case said.Kind == verdict.Dead || attempt >= retry.Max:
		delete(p.failed, name)
		p.dead[name] = true
		return "dead"
	}
	wait := retry.Wait(attempt)
	if said.Kind == verdict.Retry {
		wait = said.After
	}
	p.failed[name] = attempt
	p.put(name, p.now.Add(wait))
	return "failed"
}
