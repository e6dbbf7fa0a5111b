package retryqueue

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/store"
)

// lanes are the parked events of a partition, without their payload. A lane is a list
// ordered by entry ID. Only its head may run, once it is due; lanes do not wait for one
// another. lanes is for use by one goroutine.
type lanes struct {
	byName map[string]*lane
	of     map[string]*lane // by entry ID
	ready  [3]ready         // by kind
}

type lane struct {
	name   string
	events []store.RetryState // never empty
	flows  bool               // the last attempt in it succeeded
	kind   int
	at     int // in its heap
}

// The kinds of lanes.
const (
	ordinary = iota
	suspects // its head may have ended its worker
	flowing  // its head waited for an event that succeeded
)

// kindOf returns suspects for an event that may have ended its worker, else the kind of others.
func kindOf(s *store.RetryState) int {
	if s.Reason == ReasonCrash {
		return suspects
	}
	return ordinary
}

func newLanes() *lanes { return &lanes{byName: map[string]*lane{}, of: map[string]*lane{}} }

func (l *lanes) len() int { return len(l.of) }

func (l *lanes) holds(name string) bool { return l.byName[name] != nil }

// put adds an event to its lane, or replaces its state. An event does not change its lane.
func (l *lanes) put(s store.RetryState) {
	in := l.byName[s.Lane]
	if in == nil {
		in = &lane{name: s.Lane, events: []store.RetryState{s}}
		in.kind = in.kindNow()
		l.byName[s.Lane] = in
		heap.Push(&l.ready[in.kind], in)
	} else {
		i, found := in.find(s.ID)
		if found {
			in.events[i] = s
		} else {
			in.events = slices.Insert(in.events, i, s)
		}
		if i == 0 {
			in.flows = in.flows && (s.Running || s.Attempts == 0)
			l.settle(in)
		}
	}
	l.of[s.ID] = in
}

// remove removes an event; the next one of its lane becomes the head.
func (l *lanes) remove(id string) { l.take(id, false) }

// take is remove for an event that succeeded, or not.
func (l *lanes) take(id string, done bool) {
	in := l.of[id]
	if in == nil {
		return
	}
	delete(l.of, id)
	i, _ := in.find(id)
	if i == 0 { // as nearly always, and a lane may be long
		in.events[0] = store.RetryState{}
		in.events = in.events[1:]
	} else {
		in.events = slices.Delete(in.events, i, i+1)
	}
	switch {
	case len(in.events) == 0:
		delete(l.byName, in.name)
		heap.Remove(&l.ready[in.kind], in.at)
	case i == 0:
		in.flows = done
		l.settle(in)
	}
}

func (in *lane) kindNow() int {
	if kind := kindOf(&in.events[0]); kind == suspects || !in.flows {
		return kind
	}
	return flowing
}

// settle gives a lane its place by its new head.
func (l *lanes) settle(in *lane) {
	kind := in.kindNow()
	if kind == in.kind {
		heap.Fix(&l.ready[kind], in.at)
		return
	}
	heap.Remove(&l.ready[in.kind], in.at)
	in.kind = kind
	heap.Push(&l.ready[kind], in)
}

// head returns the lane head of a kind that runs first, nil without any.
func (l *lanes) head(kind int) *store.RetryState {
	if len(l.ready[kind]) == 0 {
		return nil
	}
	return &l.ready[kind][0].events[0]
}

// due returns the event that runs next, nil if none is due. If it is the turn of new events, fresh,
// due returns only an event that does not delay them. alone reports whether a suspect may run.
func (l *lanes) due(now int64, fresh bool, alone func(*store.RetryState) bool) *store.RetryState {
	if s := l.head(suspects); s != nil && s.At <= now && alone(s) {
		return s
	}
	next := l.head(flowing)
	if s := l.head(ordinary); s != nil && !fresh && (next == nil || sooner(s, next)) {
		next = s
	}
	if next == nil || next.At > now {
		return nil
	}
	return next
}

// next returns when the next event is due, -1 if no event becomes due by itself.
func (l *lanes) next(now int64) (at int64) {
	at = -1
	for kind := range l.ready {
		// A suspect that is due waits for its turn, not for a time.
		if s := l.head(kind); s != nil && (kind != suspects || s.At > now) && (at < 0 || s.At < at) {
			at = max(s.At, 0)
		}
	}
	return at
}

func (in *lane) find(id string) (int, bool) {
	return slices.BinarySearchFunc(in.events, id, func(s store.RetryState, id string) int { return entryid.Compare(s.ID, id) })
}

// ready is a heap of lanes by the time of their heads, then by entry ID.
type ready []*lane

func (h ready) Len() int { return len(h) }

func (h ready) Less(i, j int) bool { return sooner(&h[i].events[0], &h[j].events[0]) }

func sooner(a, b *store.RetryState) bool {
	return cmp.Or(cmp.Compare(a.At, b.At), entryid.Compare(a.ID, b.ID)) < 0
}

func (h ready) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push implements heap.Interface.
func (h *ready) Push(x any) {
	in := x.(*lane)
	in.at = len(*h)
	*h = append(*h, in)
}

// Pop implements heap.Interface.
func (h *ready) Pop() any {
	last := len(*h) - 1
	in := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return in
}
