package runnel

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"time"
)

// want is a loop's request for its next iteration: the previous batch is done, the next
// one should have this shape.
type want struct {
	n      int
	within time.Duration
	raw    bool
	keep   bool // the slices are the loop's to keep
}

// delivery is the answer to a want; nil means that no more events follow. It is valid
// until the next delivery.
type delivery[T any] struct {
	ctx     context.Context
	events  []*Event
	records []T // parallel to events, unless the want was raw
}

// Events is what a ProcessFunc ranges over: the events of one partition, in
// order, for as long as this worker owns the partition.
//
// A batch (one event, unless Take made it longer) is acked when the loop asks for the
// next one or the function returns nil; break by itself acks nothing. A range ends when
// the partition is released or lost, and at shutdown; code after the loop still runs.
// Ranging again continues after the last event. Only one range may be under way at a
// time: a second one, in another goroutine or nested in the first, panics.
type Events[T any] struct {
	partition int
	ask       func(want) *delivery[T]
	ctx       context.Context
	busy      atomic.Bool
}

// Partition returns the number of the partition, from 0.
func (e *Events[T]) Partition() int { return e.partition }

// Context returns the context of the current iteration, for calls in the loop. It ends
// when the partition is lost, when the grace period of a release or shutdown is over, and
// after ProcessorOptions.Timeout. Middleware may have added a deadline or values, and log
// lines with this context name the event. Before the first iteration it is the context of
// the ownership, which the ProcessFunc gets.
func (e *Events[T]) Context() context.Context { return e.ctx }

// Records yields decoded records, one per iteration.
func (e *Events[T]) Records() iter.Seq[T] {
	return func(yield func(T) bool) {
		e.each(want{n: 1}, func(d *delivery[T]) bool { return yield(d.records[0]) })
	}
}

// All yields events together with their decoded records.
func (e *Events[T]) All() iter.Seq2[*Event, T] {
	return func(yield func(*Event, T) bool) {
		e.each(want{n: 1}, func(d *delivery[T]) bool { return yield(d.events[0], d.records[0]) })
	}
}

// Raw yields events without decoding them.
func (e *Events[T]) Raw() iter.Seq[*Event] {
	return func(yield func(*Event) bool) {
		e.each(want{n: 1, raw: true}, func(d *delivery[T]) bool { return yield(d.events[0]) })
	}
}

// Take puts events together. It yields a batch when the batch has n events, or the
// duration within after its first event arrived, or when the batch fills the read-ahead
// buffer (PrefetchBytes). A batch is never empty and never longer than n. If within is
// zero or negative, Take yields the events that are there. It panics if n is below 1.
func (e *Events[T]) Take(n int, within time.Duration) *Batches[T] {
	mustTake(n, within)
	return &Batches[T]{events: e, want: want{n: n, within: max(within, 0), keep: true}}
}

func mustTake(n int, within time.Duration) {
	if n < 1 {
		panic(fmt.Sprintf("runnel: Take(%d, %v): n must be at least 1", n, within))
	}
}

// each is a range over deliveries of one shape, until yield returns false.
func (e *Events[T]) each(w want, yield func(*delivery[T]) bool) {
	if !e.busy.CompareAndSwap(false, true) {
		panic("runnel: two goroutines range over the same Events, or a loop inside a loop over them; take a batch and share that out instead")
	}
	defer e.busy.Store(false)
	for d := e.ask(w); d != nil && yield(d); d = e.ask(w) {
	}
}

// Batches is Events in batches; see Take.
type Batches[T any] struct {
	events *Events[T]
	want   want
}

// Records yields batches of decoded records. The slice is the loop's to keep.
func (b *Batches[T]) Records() iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		b.events.each(b.want, func(d *delivery[T]) bool { return yield(d.records) })
	}
}

// All yields batches of events with their decoded records, at the same indexes. The
// slices are the loop's to keep.
func (b *Batches[T]) All() iter.Seq2[[]*Event, []T] {
	return func(yield func([]*Event, []T) bool) {
		b.events.each(b.want, func(d *delivery[T]) bool { return yield(d.events, d.records) })
	}
}

// Raw yields batches of events without decoding them. The slice is the loop's
// to keep.
func (b *Batches[T]) Raw() iter.Seq[[]*Event] {
	return func(yield func([]*Event) bool) {
		w := b.want
		w.raw = true
		b.events.each(w, func(d *delivery[T]) bool { return yield(d.events) })
	}
}
