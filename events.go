package runnel

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"time"
)

// want is what a loop asks for when it comes round: the batch before is done,
// the next one should have this shape.
type want struct {
	n      int
	within time.Duration
	raw    bool
	keep   bool // the slices are the loop's to keep
}

// delivery answers a want; nil says that there is nothing more. It is valid until
// the next one.
type delivery[T any] struct {
	ctx     context.Context
	events  []*Event
	records []T // parallel to events, unless the want was raw
}

// Events is what a ProcessFunc ranges over: the events of one partition, in
// order, for as long as this worker owns the partition.
//
// A batch (one event, unless Take made it longer) is acked when the loop asks
// for the next one or the function returns nil; break by itself acks nothing.
// A range ends when the partition is released, at shutdown, or when it is lost;
// code after the loop then still runs. Ranging again goes on behind the last
// event. Only one range may be under way at a time: a second one, of another
// goroutine or nested in the first, panics.
type Events[T any] struct {
	partition int
	ask       func(want) *delivery[T]
	ctx       context.Context
	busy      atomic.Bool
}

// Partition returns the number of the partition, from 0.
func (e *Events[T]) Partition() int { return e.partition }

// Context returns the context of the current iteration, for what the loop calls. It ends when the
// partition is lost, when the grace period of a release or shutdown is over, and when
// ProcessorOptions.Timeout is; middleware may have given it a deadline or values, and log lines under
// it name the event. Before the first iteration it is that of the ownership, which the ProcessFunc gets.
func (e *Events[T]) Context() context.Context { return e.ctx }

// Records yields decoded records, one per iteration.
func (e *Events[T]) Records() iter.Seq[T] {
	return func(yield func(T) bool) {
		defer e.enter()()
		for d := e.next(want{n: 1}); d != nil; d = e.next(want{n: 1}) {
			if !yield(d.records[0]) {
				return
			}
		}
	}
}

// All yields events together with their decoded records.
func (e *Events[T]) All() iter.Seq2[*Event, T] {
	return func(yield func(*Event, T) bool) {
		defer e.enter()()
		for d := e.next(want{n: 1}); d != nil; d = e.next(want{n: 1}) {
			if !yield(d.events[0], d.records[0]) {
				return
			}
		}
	}
}

// Raw yields events without decoding them.
func (e *Events[T]) Raw() iter.Seq[*Event] {
	return func(yield func(*Event) bool) {
		defer e.enter()()
		w := want{n: 1, raw: true}
		for d := e.next(w); d != nil; d = e.next(w) {
			if !yield(d.events[0]) {
				return
			}
		}
	}
}

// Take puts events together: a batch is yielded when it has n events, or
// within after its first event arrived, or when it fills the read-ahead buffer
// (PrefetchBytes). It is never empty and never longer than n. A within of zero
// or less takes what is there. An n below 1 panics.
func (e *Events[T]) Take(n int, within time.Duration) *Batches[T] {
	if n < 1 {
		panic(fmt.Sprintf("runnel: Take(%d, %v): n must be at least 1", n, within))
	}
	return &Batches[T]{events: e, want: want{n: n, within: max(within, 0), keep: true}}
}

// enter begins a range and returns what ends it.
func (e *Events[T]) enter() func() {
	if !e.busy.CompareAndSwap(false, true) {
		panic("runnel: two goroutines range over the same Events, or a loop inside a loop over them; take a batch and share that out instead")
	}
	return func() { e.busy.Store(false) }
}

func (e *Events[T]) next(w want) *delivery[T] {
	return e.ask(w)
}

// Batches is Events in batches; see Take.
type Batches[T any] struct {
	events *Events[T]
	want   want
}

// Records yields batches of decoded records. The slice is the loop's to keep.
func (b *Batches[T]) Records() iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		defer b.events.enter()()
		for d := b.events.next(b.want); d != nil; d = b.events.next(b.want) {
			if !yield(d.records) {
				return
			}
		}
	}
}

// All yields batches of events with their decoded records, which stand in the
// same places. The slices are the loop's to keep.
func (b *Batches[T]) All() iter.Seq2[[]*Event, []T] {
	return func(yield func([]*Event, []T) bool) {
		defer b.events.enter()()
		for d := b.events.next(b.want); d != nil; d = b.events.next(b.want) {
			if !yield(d.events, d.records) {
				return
			}
		}
	}
}

// Raw yields batches of events without decoding them. The slice is the loop's
// to keep.
func (b *Batches[T]) Raw() iter.Seq[[]*Event] {
	return func(yield func([]*Event) bool) {
		defer b.events.enter()()
		w := b.want
		w.raw = true
		for d := b.events.next(w); d != nil; d = b.events.next(w) {
			if !yield(d.events) {
				return
			}
		}
	}
}
