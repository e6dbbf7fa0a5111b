package delivery

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

// A Letter is an event that is dead: it failed alone, and is not tried again.
type Letter struct {
	Event    Event
	Answer   Answer // to its last attempt
	Attempts int    // all that it was part of
}

const growAfter = 10 // successes, until batches that were too large may be twice as large again

// Next begins an attempt: of the open batch, else of the next one. The caller stores the state before it makes the request, and
// then reports what became of it by Done, Fail or Halve; until then nothing else begins. Without a batch, at is
// when to ask again; zero: when something has changed.
//
// Next also drops what is older than the retention, whether or not it begins something.
func (w *Window) Next(now time.Time) (b *Batch, at time.Time) {
	w.expire(now)
	if w.running != nil || w.state.Off != "" || w.open != nil && !w.open.complete() {
		return nil, time.Time{}
	}
	at = time.UnixMilli(w.until)
	var events []Event
	if w.open != nil {
		events = w.open.Events
	} else if n, ready := w.s.cut(w.free, max(1, cmp.Or(min(w.most, w.s.Max), w.s.Max)), w.state.Alone); n == 0 {
		return nil, time.Time{}
	} else if events = w.free[:n]; ready.After(at) {
		at = ready
	}
	if at.After(now) {
		expiry := time.UnixMilli(events[0].ID.MS + 1).Add(w.s.Retention)
		if w.s.Retention > 0 && expiry.Before(at) {
			at = expiry
		}
		return nil, at
	}
	if w.open == nil {
		w.state.Batches++
		w.open = newBatch(w.state.Batches, events[:len(events):len(events)])
		w.state.Open = w.open.Open
		w.free = w.free[len(events):]
	}
	w.open.Attempt++
	w.running, w.unsaved = w.open, true
	return w.open, time.Time{}
}

// cut returns how many of some events are the next batch, and when it is ready.
func (s *Settings) cut(events []Event, most int, alone map[string]int64) (n int, ready time.Time) {
	bytes := 0
	for _, e := range events {
		bytes += len(e.Payload)
		single := e.ID.N <= alone[e.Log]
		if n > 0 && (single || s.Bytes > 0 && bytes > s.Bytes) {
			return n, time.Time{}
		}
		if n++; n == most || single {
			return n, time.Time{}
		}
	}
	if n == 0 {
		return 0, time.Time{}
	}
	return n, time.UnixMilli(events[0].ID.MS).Add(s.Timeout)
}

// expire drops what is older than the retention. No batch waits with such events, and none that runs is
// overtaken by a position.
func (w *Window) expire(now time.Time) {
	old := func(e Event) bool { return time.UnixMilli(e.ID.MS).Add(w.s.Retention).Before(now) }
	if w.s.Retention <= 0 {
		return
	}
	if w.open != nil && w.open != w.running && slices.ContainsFunc(w.open.Events, old) {
		w.dissolve()
	}
	if len(w.free) == 0 || !old(w.free[0]) {
		return
	}
	w.free = slices.DeleteFunc(w.free, func(e Event) bool {
		if !old(e) || w.state.members(e.Log) != nil {
			return false
		}
		w.state.pass(e.Log, e.ID, 1, &w.state.Dropped)
		return true
	})
	w.unsaved = true
	w.tidy()
}

// Undo takes back what Next has begun, which was not stored since the settings have changed. Apply follows.
func (w *Window) Undo(b *Batch) {
	if b != w.running {
		return
	}
	w.running, w.unsaved = nil, true
	if b.Attempt--; b.Attempt == 0 && b == w.open {
		w.state.Batches--
		w.dissolve()
	}
	w.tidy()
}

// Done settles a batch: the receiver has it.
func (w *Window) Done(b *Batch, now time.Time, a Answer) {
	if !w.answered(b, now, a) {
		return
	}
	w.state.OK, w.state.Since, w.state.Row, w.until = now.UnixMilli(), 0, 0, 0
	if w.good++; w.good%growAfter == 0 {
		w.most *= 2
	}
	if w.most >= w.s.Max {
		w.most = 0
	}
	if b == w.open {
		w.settle(&w.state.Sent)
	}
	w.tidy()
}

// Fail lets a batch wait until a time, unless it had all its attempts; what comes instead of it waits as long.
func (w *Window) Fail(b *Batch, now, until time.Time, a Answer) {
	if !w.answered(b, now, a) {
		return
	}
	w.state.failed(now, w.s.DisableAfter)
	w.until = max(0, until.UnixMilli())
	b.Until = w.until
	first := b.Events[0]
	alone := len(b.Events) == 1 && first.ID.N <= w.state.Alone[first.Log]
	bound := w.s.Attempts > 0 && b.Attempt >= w.s.Attempts
	switch {
	case b != w.open:
	case alone || bound && len(b.Events) == 1:
		letter := Letter{first, w.state.Last, b.Attempt}
		if alone {
			letter.Attempts += w.s.Attempts
		}
		w.letters = append(w.letters, letter)
		w.settle(&w.state.Dead)
	case bound:
		for log, members := range b.Members {
			w.state.Alone[log] = members.last()
		}
		w.dissolve()
	}
	w.tidy()
}

// Halve lets half as many events be sent at once, since a batch was too large for the receiver. A single event waits until
// a time, as in Fail.
func (w *Window) Halve(b *Batch, now, until time.Time, a Answer) {
	if len(b.Events) == 1 {
		w.Fail(b, now, until, a)
		return
	}
	if !w.answered(b, now, a) {
		return
	}
	w.state.failed(now, w.s.DisableAfter)
	w.most, w.good = len(b.Events)/2, 0
	if b == w.open {
		w.dissolve()
	}
	w.tidy()
}

// answered ends an attempt; false: it is not running.
func (w *Window) answered(b *Batch, now time.Time, a Answer) bool {
	if b != w.running || b == nil {
		return false
	}
	a.At = now.UnixMilli()
	w.running, w.state.Last, w.unsaved = nil, a, true
	return true
}

// settle passes the open batch, whose events one sum counts.
func (w *Window) settle(sum *int64) {
	for _, some := range chunks(w.open.Events) {
		w.state.pass(some[0].Log, some[len(some)-1].ID, int64(len(some)), sum)
	}
	w.open, w.state.Open = nil, nil
}

// Disable lets nothing begin until an operator resumes the subscriber. A request that is running is answered first.
func (w *Window) Disable(why string) { w.state.Off, w.unsaved = why, true }

// Letters returns the events that became dead since the last call. They are to be stored together with the state.
func (w *Window) Letters() []Letter {
	letters := w.letters
	w.letters = nil
	return letters
}

// State returns the state, which belongs to the window.
func (w *Window) State() *State { return &w.state }

// Unsaved reports whether the state has changed since Encode.
func (w *Window) Unsaved() bool { return w.unsaved }

// Encode returns the state as it is to be stored.
func (w *Window) Encode() []byte {
	w.unsaved = false
	text, _ := json.Marshal(&w.state) // numbers and texts
	return text
}
