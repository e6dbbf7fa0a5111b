package worker

import (
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
)

// An isolation is how far a suspect excludes other events of its worker.
type isolation int

const (
	notIsolated        isolation = iota
	isolationShared              // for an event that a dead worker may have begun
	isolationTurn                // for a suspect: no other suspect runs
	isolationExclusive           // for a suspect whose attempt decides: no other possible cause runs
)

// A crashIsolation lets suspects of one worker, events that may have ended a process,
// run one at a time. At its last attempt a suspect does not run beside events that may
// have done so either. Then the next crash names its cause.
//
//  1. events 1 of partition A and 2 of partition B are in progress when the
//     process dies; 2 kills it each time;
//  2. both are suspects, and would be again for ever if both ran at once: 1
//     would be a dead letter with 2.
//
// No event waits for one that runs for longer than its partition stays with a dead worker, since
// it may run for ever. If the process dies then, the cause is less certain.
type crashIsolation struct {
	mu      sync.Mutex
	running map[claimant]claimed
	waiting map[claimant]isolation
	timer   *time.Timer // wakes claimants that wait for one that runs for long; nil: none
	at      int64       // when, by monotime
}

// A claimant is a partition that may run an event.
type claimant interface {
	leaseLength() time.Duration // how long its partition stays with a dead worker
	retry()                     // another claim may succeed; must not block
}

// A turn is what one partition has claimed of its worker's crashIsolation. One goroutine uses it.
type turn struct {
	of   *crashIsolation
	by   claimant
	held isolation
}

// claim reports whether an event of that kind may run.
func (t *turn) claim(h isolation) bool {
	if t.held >= h {
		return true
	}
	if !t.of.claim(t.by, h) {
		return false
	}
	t.held = h
	return true
}

// letGo gives back what was claimed, when no event of the ownership runs.
func (t *turn) letGo() {
	if t.held != notIsolated {
		t.of.release(t.by)
		t.held = notIsolated
	}
}

// forget ends the wait for what could not be claimed.
func (t *turn) forget() { t.of.forget(t.by) }

// yield is letGo and forget, for an ownership that does not go on by itself.
func (t *turn) yield() {
	t.letGo()
	t.forget()
}

type claimed struct {
	hold isolation
	away int64 // no other event waits for it from then on, by monotime
}

func newCrashIsolation() *crashIsolation {
	return &crashIsolation{running: map[claimant]claimed{}, waiting: map[claimant]isolation{}}
}

// claim reports whether t may run an event of that kind. Otherwise t.retry is called when another
// claim may succeed.
func (a *crashIsolation) claim(t claimant, h isolation) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, free := monotime.Now(), true
	for other, c := range a.running {
		if other != t && now < c.away && (h == isolationExclusive || c.hold == isolationExclusive || h == isolationTurn && c.hold == isolationTurn) {
			free = false
			a.wakeAt(c.away)
		}
	}
	if h == isolationShared {
		for other, waits := range a.waiting {
			free = free && (waits != isolationExclusive || other == t) // or they would never have their turn
		}
	}
	if !free {
		a.waiting[t] = max(a.waiting[t], h)
		return false
	}
	delete(a.waiting, t)
	a.running[t] = claimed{h, now + int64(t.leaseLength())}
	return true
}

func (a *crashIsolation) release(t claimant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.running, t)
	a.wake()
}

func (a *crashIsolation) forget(t claimant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.waiting[t]
	delete(a.waiting, t)
	if h != isolationExclusive {
		return
	}
	// Claims to run beside others waited for this turn. If those others were woken, two claims to
	// run alone would wake each other without end.
	for other, waits := range a.waiting {
		if waits == isolationShared {
			other.retry()
		}
	}
}

// wakeAt wakes waiting claimants at a time, or before; mu is held.
func (a *crashIsolation) wakeAt(at int64) {
	if a.timer != nil {
		if a.at <= at {
			return
		}
		a.timer.Stop()
	}
	a.at = at
	a.timer = time.AfterFunc(time.Duration(at-monotime.Now()), func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.timer = nil
		a.wake()
	})
}

func (a *crashIsolation) wake() {
	for t := range a.waiting {
		t.retry()
	}
}
