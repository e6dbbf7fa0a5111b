package worker

import "sync"

// An alone lets suspects of one worker, events that may have ended a process,
// run one at a time, and not beside events of which nobody knows whether they
// did: so that the next crash names its cause.
//
//  1. events 1 of partition A and 2 of partition B are in progress when the
//     process dies; 2 kills it each time;
//  2. both are suspects, and would be again for ever if both ran at once: 1
//     would be a dead letter with 2.
type alone struct {
	mu      sync.Mutex
	suspect bool
	others  int
	waiting map[*tenure]bool // whether a suspect waits
}

func newAlone() *alone { return &alone{waiting: map[*tenure]bool{}} }

// claim says whether t may run a suspect, or else something that may be one.
// Otherwise t is woken when it is worth another try.
func (a *alone) claim(t *tenure, suspect bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	free := !a.suspect && (!suspect || a.others == 0)
	if !suspect {
		for other, waits := range a.waiting {
			free = free && (!waits || other == t) // or they would never have their turn
		}
	}
	if !free {
		a.waiting[t] = a.waiting[t] || suspect
		return false
	}
	delete(a.waiting, t)
	if suspect {
		a.suspect = true
	} else {
		a.others++
	}
	return true
}

// release ends what claim allowed.
func (a *alone) release(suspect bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if suspect {
		a.suspect = false
	} else {
		a.others--
	}
	a.wake()
}

// forget ends the wait of t.
func (a *alone) forget(t *tenure) {
	a.mu.Lock()
	defer a.mu.Unlock()
	suspect := a.waiting[t]
	delete(a.waiting, t)
	if suspect {
		a.wake() // others waited for its turn
	}
}

func (a *alone) wake() {
	for t := range a.waiting {
		t.nudge()
	}
}
