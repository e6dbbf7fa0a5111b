package stage

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/retryqueue"
	istage "github.com/runnel-go/runnel/internal/stage"
	"github.com/runnel-go/runnel/internal/verdict"
)

// passesPerMinute is how often stages may change an entity before they are slowed down.
const passesPerMinute = 100

// touch asks all stages whether they want to visit the entity.
func (t *turn) touch(value any) {
	t.o.set.count.passes.Add(1)
	wanted := t.wanted(value, t.now.version, "")
	end := t.ended()
	if f := t.failures[istage.Touch]; f.Reason == istage.ReasonLoop && loops(t.now.passes, t.o.own.Now()) {
		end.What = istage.Ends // the next time it waits longer
	}
	version := t.now.version
	given := t.callEarly(value)
	if given {
		for i := range wanted {
			if wanted[i].What == istage.Begins { // what is put since the take is behind the call
				wanted[i].Text += " " + t.v.Puts
			}
		}
	}
	t.settle(untouched, append([]istage.Settlement{end}, wanted...)...)
	if t.now.version == version && !given {
		t.now.value = value
	}
}

// wanted asks all stages but one whether they want to visit the entity of that version, 0 for one that is
// being stored. It leaves alone a stage whose failed visit waits, or an entity that often changes would use
// up its attempts; one whose visit is dead, until the entity changes; and one whose visit is in the chain
// already, which will look at this value: a second one would not wait when that fails. A stage whose when
// panics gets a visit, which fails for it.
func (t *turn) wanted(value any, version int64, but string) (all []istage.Settlement) {
	has := t.o.waitingIn(t.chain)
	for _, s := range t.o.set.stages {
		f, failed := t.failures[s.name]
		if s.name == but || has[s.name] || failed && !f.Dead || failed && version != 0 && f.Version >= version {
			continue
		}
		if wants, err := s.wants(value); !wants && err == nil {
			continue
		}
		if failed {
			all = append(all, istage.Settlement{Stage: s.name, What: istage.Recovers})
		}
		put, begins := t.beginning(s)
		if !begins {
			put = istage.Settlement{Stage: s.name, What: istage.Puts, Due: istage.In(0)}
		}
		all = append(all, put)
	}
	return all
}

// change stores or deletes what the Func has made, and reports whether to begin anew.
func (t *turn) change(r Result, made any) (again bool) {
	e := &istage.End{Mode: r.mode, Passes: t.now.passes}
	if r.mode == istage.Remove {
		return t.store(e, deleted, made, []istage.Settlement{t.ended()})
	}
	stored, err := made, error(nil)
	if e.Payload, err = t.o.set.encode(t.id, made); err == nil && t.o.set.external == nil {
		stored, err = t.o.set.decode(t.id, e.Payload) // as other workers will see it
	}
	if err != nil {
		t.fail(err, retryqueue.ReasonFailed)
		return false
	}
	but := ""
	if r.again.wanted {
		but = t.v.Stage
	}
	now := t.o.own.Now()
	e.Passes = pass(t.now.passes, now)
	var wanted []istage.Settlement
	if loops(e.Passes, now) {
		wanted = []istage.Settlement{t.slowedDown(now)}
	} else {
		wanted = t.wanted(stored, 0, but)
	}
	again = t.store(e, updated, made, t.after(r, wanted))
	if t.now.payload == e.Payload && t.o.set.external == nil {
		t.now.value = stored
	}
	return again
}

// store ends the visit together with the change of its entity; in an external set, right behind that.
func (t *turn) store(e *istage.End, as result, made any, settle []istage.Settlement) (again bool) {
	e.Settle = settle
	if x := t.o.set.external; x != nil {
		if !t.o.own.Live() {
			t.putBack()
			return false
		}
		version, err := x.change(t.o.ctx, t.id, made, t.now.version, e.Mode == istage.Remove)
		switch {
		case errors.Is(err, ErrConflict):
			t.o.set.counted(t.v.Stage, conflict)
			t.now = entity{}
			return true
		case errors.Is(err, ErrNotFound):
			e.Mode, e.Settle, as = istage.Forget, settle[:1], gone
		case err != nil && t.o.ctx.Err() != nil: // the ownership has ended, and the store was told so
			t.putBack()
			return false
		case err != nil:
			t.fail(err, retryqueue.ReasonFailed)
			return false
		case e.Mode == istage.Remove:
			e.Mode = istage.Forget
		default:
			e.Mode, e.Payload = istage.Leave, ""
		}
		t.end(e, as)
		t.now = entity{version: version, passes: e.Passes}
		t.o.recent.set(t.id, e.Passes, t.o.own.Now())
		return false
	}
	return t.end(e, as) == istage.Conflict
}

// fail records that the visit failed, or ends it as its error says.
func (t *turn) fail(err error, reason string) {
	said, retry := verdict.Of(err), t.o.set.retry
	if t.s != nil {
		retry = t.s.retry
	}
	if said.Kind == verdict.Drop {
		t.o.log.Warn("visit dropped", "stage", named(t.v.Stage), "entity", t.id, "err", err)
		t.settle(dropped, t.ended())
		return
	}
	f, as := t.failure().failed(t.o.own.Now(), err, reason, t.now.version), failed
	var again *time.Duration
	if said.Kind == verdict.Retry {
		again = &said.After
	}
	if t.s != nil { // a touch has no dead
		f.Dead = said.Kind == verdict.Dead || reason == retryqueue.ReasonDecode || f.Attempts >= retry.Max
	}
	if said.Kind == verdict.Dead {
		f.Reason = retryqueue.ReasonDead
	}
	if f.Dead {
		as = dead
	}
	all := []istage.Settlement{f.settle(t.v.Stage, retry, again)}
	if t.failures[t.v.Stage].Dead { // it was visited all the same, and is dead no more
		all = append([]istage.Settlement{{Stage: t.v.Stage, What: istage.Recovers}}, all...)
	}
	t.o.log.Warn("visit failed", "stage", named(t.v.Stage), "entity", t.id, "attempt", f.Attempts, "dead", f.Dead, "err", err)
	t.settle(as, all...)
	t.failures[t.v.Stage] = f
}

// slowedDown is what becomes of the next touch of an entity that stages change too often.
func (t *turn) slowedDown(now time.Time) istage.Settlement {
	err := fmt.Errorf("stages have changed the entity %d times within a minute; the last one is %s", passesPerMinute, t.v.Stage)
	f := t.failures[istage.Touch].failed(now, err, istage.ReasonLoop, t.now.version)
	t.failures[istage.Touch] = f
	t.o.set.count.trips.Add(1)
	t.o.log.Warn("entity slowed down", "stage", t.v.Stage, "entity", t.id, "attempt", f.Attempts, "err", err)
	return f.settle(istage.Touch, t.o.set.retry, nil)
}

// Passes are stored as when their minute began, in ms, and how many there were.

// pass adds one pass.
func pass(passes string, now time.Time) string {
	began, n := passesOf(passes)
	if now.UnixMilli()-began >= time.Minute.Milliseconds() {
		began, n = now.UnixMilli(), 0
	}
	return strconv.FormatInt(began, 10) + "/" + strconv.Itoa(n+1)
}

// loops reports whether there were too many passes within the minute.
func loops(passes string, now time.Time) bool {
	began, n := passesOf(passes)
	return n > passesPerMinute && now.UnixMilli()-began < time.Minute.Milliseconds()
}

func passesOf(passes string) (began int64, n int) {
	minute, count, _ := strings.Cut(passes, "/")
	began, _ = strconv.ParseInt(minute, 10, 64)
	n, _ = strconv.Atoi(count)
	return began, n
}

// A recent has the passes of the entities of an external set that one owner has seen of late. Its methods
// may be called concurrently.
type recent struct {
	mu    sync.Mutex
	began time.Time
	by    map[string]string
}

func (r *recent) of(id string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.by[id]
}

func (r *recent) set(id, passes string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.began) >= 2*time.Minute {
		r.began, r.by = now, map[string]string{}
	}
	r.by[id] = passes
}
