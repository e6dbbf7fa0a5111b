package delivery

import (
	"maps"
	"slices"
	"time"
)

// Settings are what a subscriber wants. Others than the owner change them.
type Settings struct {
	Max          int             // events of a batch; 0: one
	Bytes        int             // of their payloads together, but an event alone may be larger; 0: no bound
	Timeout      time.Duration   // how long an event waits for others to fill the batch, from its arrival on; 0: not at all
	Attempts     int             // of a batch before its events are sent alone; 0: no bound
	Retention    time.Duration   // older events are dropped; 0: none
	DisableAfter time.Duration   // of failures in a row; 0: never
	Spans        map[string]Span // by log
	Resumed      int64           // grows each time that an operator resumes the subscriber
}

// A Span is what is wanted of a log: what lies behind From, up to the number End; 0: no end. Pin is what has the log keep that until the
// owner does.
type Span struct {
	From ID
	End  int64
	Pin  string `json:",omitempty"`
}

// A Window is a subscriber as its owner knows it: its state and settings, and the events that are loaded. It may not be
// used concurrently.
type Window struct {
	s       Settings
	state   State
	unsaved bool
	loaded  map[string]ID // of each log of state.Settled: up to here everything is loaded, settled or missing
	skipped map[string]ID // the last entry without a number
	free    []Event       // by arrival, in no batch
	open    *Batch
	running *Batch // a request of it is under way; it is no longer open if it was dissolved meanwhile
	until   int64  // nothing is begun before, ms since 1970
	most    int    // events of a batch after one was too large; 0: Max
	good    int    // successes since
	letters []Letter
}

// New returns a subscriber with its stored state, which it keeps; the zero State is that of a new one. A batch that is open in the state is
// repeated when its events are loaded.
func New(state State, s Settings) *Window {
	w := &Window{state: state, loaded: map[string]ID{}, skipped: map[string]ID{}}
	st := &w.state
	st.Settled, st.Ended, st.Alone = orEmpty(st.Settled), orEmpty(st.Ended), orEmpty(st.Alone)
	maps.Copy(w.loaded, st.Settled)
	if st.Open != nil {
		w.open = &Batch{Open: st.Open}
		w.until = w.open.Until
		for log, members := range w.open.Members {
			if at, known := st.Settled[log]; w.open != nil && (!known || members[0].First <= at.N) {
				w.dissolve()
			}
		}
	}
	w.Apply(s)
	return w
}

func orEmpty[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}

// Apply takes newer settings, which the window keeps. A log begins at its span's From unless the state knows it. What is
// loaded beyond the end of a span is forgotten, unless a batch has it. A log that is not named goes with what is queued
// of it, the members of a running batch when that has ended.
func (w *Window) Apply(s Settings) {
	w.s = s
	st := &w.state
	if s.Resumed > st.Resumed {
		w.unsaved = true
		st.Resumed, st.Off, st.Since, st.Row, w.until = s.Resumed, "", 0, 0, 0
		if w.open != nil {
			w.open.Until = 0
		}
	}
	if s.Attempts == 0 {
		clear(st.Alone)
	}
	for log := range st.Ended {
		if _, named := s.Spans[log]; !named {
			delete(st.Ended, log)
			w.unsaved = true
		}
	}
	for log, span := range s.Spans {
		if _, known := st.Settled[log]; known {
			continue
		}
		if from, ok := st.begins(log, span); ok {
			delete(st.Ended, log)
			st.Settled[log], w.loaded[log], w.unsaved = from, from, true
		}
	}
	w.tidy()
}

// Room returns how many more events may be loaded, besides members of the open batch.
func (w *Window) Room() int { return max(0, max(1, w.s.Max)-len(w.free)) }

// Wants reports whether a log is to be read on, and behind which ID. Without room it is if the batch of a former owner still lacks members.
// A disabled subscriber wants nothing.
func (w *Window) Wants(log string) (behind ID, more bool) {
	at, known := w.loaded[log]
	if end, ends := w.state.end(log, w.s.Spans); !known || w.state.Off != "" || ends && at.N >= end {
		return at, false
	}
	return slices.MaxFunc([]ID{at, w.skipped[log]}, ID.Compare), w.Room() > 0 || w.state.members(log).last() > at.N
}

// Load takes what a log has behind Wants, ascending: all of it or the first part, and what was loaded before is
// taken once. Without room for them, events are left out and wanted again. No events at all mean that the log has been read just now and
// has nothing there: a batch of a former owner does not wait for it any longer, nor does the end of a span.
//
// Load returns by how many numbers the log was set back, which is 0 but after a failover to a replica that was
// behind: numbers are then given again, with later times, and what was loaded or open under them is forgotten.
func (w *Window) Load(log string, events []Event) (back int64) {
	if _, known := w.loaded[log]; !known {
		return 0
	}
	w.free = slices.Grow(w.free, min(len(events), w.Room()))
	at, members := w.loaded[log], w.state.members(log)
	end, ends := w.state.end(log, w.s.Spans)
loading:
	for _, e := range events {
		if e.ID.N == 0 { // it was added by hand
			w.skipped[log] = e.ID
			continue
		}
		again := e.ID.N <= at.N && e.ID.MS > at.MS
		if again || members.count(at.N+1, e.ID.N-1) > 0 {
			if w.loaded[log] = at; again {
				back += at.N - e.ID.N + 1
				w.setBack(log, e.ID)
			} else {
				w.dissolve()
			}
			at, members = w.loaded[log], w.state.members(log)
			end, ends = w.state.end(log, w.s.Spans)
		}
		switch {
		case e.ID.N <= at.N || e.ID.MS < at.MS:
			continue // it was loaded before
		case members.has(e.ID.N):
			w.open.Events = append(w.open.Events, e)
		case e.ID.N <= members.last():
			// The batch was begun without it, so it was missing then and is dropped.
		case ends && e.ID.N > end:
			at = ID{e.ID.MS, end}
			break loading
		case w.Room() == 0:
			break loading
		default:
			w.free = append(w.free, e)
		}
		at = e.ID
	}
	w.loaded[log] = at
	if len(events) == 0 {
		if members.last() > at.N {
			w.dissolve()
		}
		if end, ends := w.state.end(log, w.s.Spans); ends && end > at.N {
			w.loaded[log] = ID{at.MS, end}
		}
	}
	if w.open != nil {
		sortEvents(w.open.Events)
	}
	sortEvents(w.free)
	w.bound(log)
	return back
}

func sortEvents(events []Event) {
	if !slices.IsSortedFunc(events, compareEvents) {
		slices.SortFunc(events, compareEvents)
	}
}

// setBack goes back to before an ID whose number was given before, to other entries.
func (w *Window) setBack(log string, id ID) {
	n, before := id.N, ID{id.MS, id.N - 1}
	if w.state.members(log).last() >= n {
		w.dissolve()
	}
	w.forget(log, n-1)
	w.loaded[log] = before
	if w.state.Settled[log].N >= n {
		w.state.Settled[log], w.unsaved = before, true
	}
	if w.state.Alone[log] >= n {
		w.state.Alone[log], w.unsaved = n-1, true
	}
}

// forget forgets free events of a log behind a number.
func (w *Window) forget(log string, n int64) {
	w.free = slices.DeleteFunc(w.free, func(e Event) bool { return e.Log == log && e.ID.N > n })
	if w.loaded[log].N > n {
		w.loaded[log] = w.last(log)
		delete(w.skipped, log)
	}
}

// last returns the last event of a log that is loaded and not settled, or the position.
func (w *Window) last(log string) ID {
	last := w.state.Settled[log]
	all := w.free
	if w.open != nil {
		all = slices.Concat(w.open.Events, w.free)
	}
	for _, e := range all {
		if e.Log == log && e.ID.N > last.N {
			last = e.ID
		}
	}
	return last
}

// bound keeps a log within its end, and lets it end there.
func (w *Window) bound(log string) {
	end, ends := w.state.end(log, w.s.Spans)
	if !ends {
		return
	}
	w.forget(log, end)
	at := w.state.Settled[log]
	if at.N < end && (w.loaded[log].N < end || w.last(log) != at) {
		return
	}
	w.state.pass(log, ID{at.MS, end}, 0, new(int64))
	delete(w.state.Settled, log)
	delete(w.loaded, log)
	delete(w.skipped, log)
	if _, named := w.s.Spans[log]; named {
		w.state.Ended[log] = ID{at.MS, end}
	}
	w.unsaved = true
}

// dissolve lets the events of the open batch be free again, in no batch.
func (w *Window) dissolve() {
	w.free = slices.Concat(w.open.Events, w.free)
	sortEvents(w.free)
	w.open, w.state.Open, w.unsaved = nil, nil, true
}

// tidy ends what has ended: logs, and the state of events that are settled.
func (w *Window) tidy() {
	if w.open != nil && w.open != w.running {
		for log := range w.open.Members {
			if _, named := w.s.Spans[log]; w.open != nil && !named {
				w.dissolve()
			}
		}
	}
	for log := range w.state.Settled {
		w.bound(log)
	}
	maps.DeleteFunc(w.state.Alone, func(log string, n int64) bool { at, known := w.state.Settled[log]; return !known || n <= at.N })
}

// Lacks reports whether a log is known to have more than is loaded: members of the open batch, or what comes before the end of a span.
func (w *Window) Lacks(log string) bool {
	at, known := w.loaded[log]
	end, ends := w.state.end(log, w.s.Spans)
	return known && (w.state.members(log).last() > at.N || ends && end > at.N)
}
