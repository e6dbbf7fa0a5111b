package webhook

import (
	"container/heap"
	"time"
)

// timers are subscribers by when they are to be looked at.
type timers []*subscriber

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].timer, t[j].timer = i+1, j+1
}
func (t *timers) Push(s any) {
	*t = append(*t, s.(*subscriber))
	s.(*subscriber).timer = len(*t)
}
func (t *timers) Pop() any {
	old := *t
	s := old[len(old)-1]
	s.timer, *t = 0, old[:len(old)-1]
	return s
}

func (t *timers) set(s *subscriber, at time.Time) {
	if s.at = at; s.timer > 0 {
		heap.Fix(t, s.timer-1)
	} else {
		heap.Push(t, s)
	}
}

func (t *timers) remove(s *subscriber) {
	if s.timer > 0 {
		heap.Remove(t, s.timer-1)
	}
}

func (t *timers) next() (time.Time, bool) {
	if len(*t) == 0 {
		return time.Time{}, false
	}
	return (*t)[0].at, true
}

// due takes a subscriber whose time has come, nil if there is none.
func (t *timers) due(now time.Time) *subscriber {
	if at, ok := t.next(); !ok || at.After(now) {
		return nil
	}
	return heap.Pop(t).(*subscriber)
}
