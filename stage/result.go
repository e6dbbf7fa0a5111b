package stage

import (
	"context"
	"time"

	istage "github.com/runnel-go/runnel/internal/stage"
)

// A Result is what a Func has done to its entity.
type Result struct {
	mode  istage.Mode
	again again
}

// An again is when another visit is due: at a time, or after a duration, or not at all.
type again struct {
	wanted bool
	at     time.Time
	after  time.Duration
}

// soonest is how soon another visit is due at the soonest, so that a stage that always wants one at once
// does not keep its worker and the server busy.
const soonest = 100 * time.Millisecond

// due returns the time for a script.
func (a again) due(now time.Time) istage.Due {
	if !a.at.IsZero() && a.at.Sub(now) > soonest {
		return istage.At(a.at)
	}
	return istage.In(max(a.after, soonest))
}

// Results. Untouched leaves the entity as it is, whatever the Func did to its copy. Updated stores the
// copy under a new version, and asks all stages; if the stored entity has another version than the Func
// was given, nothing is done and the Func is called again. Deleted does the same, and removes the entity
// with all of its visits.
var (
	Untouched = Result{}
	Updated   = Result{mode: istage.Put}
	Deleted   = Result{mode: istage.Remove}
)

// At asks for another visit of the stage, not before t by Redis' clock, and no sooner than 100 ms from
// now. An earlier one that waits already wins. After At or After, the stage itself is not asked whether it wants to visit what it stored.
func (r Result) At(t time.Time) Result {
	r.again = again{wanted: true, at: t}
	return r
}

// After is At, from the end of this visit on.
func (r Result) After(d time.Duration) Result {
	r.again = again{wanted: true, after: d}
	return r
}

// time returns the time, as seen from now.
func (a again) time(now time.Time) time.Time {
	if !a.at.IsZero() && a.at.Sub(now) > soonest {
		return a.at
	}
	return now.Add(max(a.after, soonest))
}

// A Visit says for what a Func was called.
type Visit struct {
	Set, Stage, ID string
	Partition      int
	// Epoch is the number of the ownership of the partition. Each later one is larger: a system that
	// refuses smaller ones than it has seen is safe from workers that were paused.
	Epoch   int64
	Version int64     // of the entity
	Attempt int       // 1, or more after failures
	Due     time.Time // when the visit was due, by Redis' clock
}

type visitKey struct{}

// A visitScope is what the context of a Func knows.
type visitScope struct {
	visit  Visit
	now    func() time.Time
	played bool // by a test, without Redis
}

// VisitOf returns for what the Func was called that ctx was given to. ok is false outside of one.
func VisitOf(ctx context.Context) (v Visit, ok bool) {
	s, ok := ctx.Value(visitKey{}).(*visitScope)
	if !ok {
		return Visit{}, false
	}
	return s.visit, true
}

// Now returns Redis' time as far as the worker knows it, and is never ahead of it. Outside of a Func it
// is this process' time.
func Now(ctx context.Context) time.Time {
	if s, ok := ctx.Value(visitKey{}).(*visitScope); ok {
		return s.now()
	}
	return time.Now()
}
