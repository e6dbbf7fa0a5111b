package runnel

import (
	"errors"
	"slices"
	"sync"

	"github.com/runnel-go/runnel/internal/rows"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/worker"
)

// atomicState is what an Atomic processor changes in a partition, iteration by iteration:
// the rows of its tables, and what it emits. Only the consumer and its function use it,
// but for emit.
type atomicState struct {
	src       worker.Source
	rows      *rows.Partition
	partition int
	tables    []*table
	typed     []any // *Rows[V] by table, once they were asked for

	batch []*Event // of the call of the innermost handler

	mu   sync.Mutex // of what is emitted
	done []*Event   // of the batch: the innermost handler has succeeded with them
	from rows.Mark  // of the batch
	call rows.Mark  // of the call of the innermost handler
}

func newAtomicState(in worker.Input, tables []*table) *atomicState {
	if in.Rows == nil {
		return nil
	}
	return &atomicState{src: in.Source, rows: in.Rows, partition: in.Partition, tables: tables, typed: make([]any, len(tables))}
}

// ask has the rows of the keys of several events in memory, in one round trip, before the
// function asks for them one by one. If the ownership ends meanwhile, the function finds out.
func (a *atomicState) ask(events []*Event) {
	if a == nil || len(events) < 2 {
		return
	}
	var keys []string
	for i, t := range a.tables {
		in := a.rows.Tables[i]
		if t.opts.Local || in.Complete() {
			continue
		}
		if keys == nil {
			for _, e := range events {
				keys = append(keys, keyOrNone(e))
			}
		}
		if in.Ask(keys) != nil {
			return
		}
	}
}

// keyOrNone is Event.Key; the function decides about an event whose key cannot be told.
func keyOrNone(e *Event) (key string) {
	var err error
	defer recoverInto(&err)
	return e.Key()
}

// errPartAgain is returned to a middleware that calls next again for a part of the events
// of an earlier call: what that call has changed cannot be told apart by event.
var errPartAgain = errors.New("next was called again for some of the events of an earlier call; an Atomic processor needs all of them again, or others")

// begin begins a call of the innermost handler for events of a batch, which ends with the
// entry last. What an earlier call changed that had the same events is undone.
func (a *atomicState) begin(events []*Event, last string) error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	again := 0
	for _, e := range events {
		if slices.Contains(a.done, e) {
			again++
		}
	}
	switch {
	case len(a.done) == 0:
		a.from = a.rows.Mark()
	case again == len(a.done):
		a.undoAll()
	case again > 0:
		return errPartAgain
	}
	a.call, a.batch = a.rows.Mark(), events
	if len(events) > 0 {
		a.rows.Begin(last)
	}
	return nil
}

// end ends it: its changes are kept unless it has failed.
func (a *atomicState) end(events []*Event, err *error) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rows.End()
	if *err == nil {
		*err = a.rows.Seal()
	}
	if *err != nil {
		a.rows.Undo(a.call)
		return
	}
	a.done = append(a.done, events...)
}

// partitionLike returns n if an event of the call would be in that partition by its key, or if the call is about none; else
// where one of them would be.
func (a *atomicState) partitionLike(n int, o *StreamOptions) int {
	other := n
	for _, e := range a.batch {
		if other = o.Partitioner.Func(keyOrNone(e), o.Partitions); other == n {
			break
		}
	}
	return other
}

// undo drops all that the batch has changed.
func (a *atomicState) undo() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.undoAll()
}

func (a *atomicState) undoAll() {
	a.rows.End()
	if len(a.done) > 0 {
		a.rows.Undo(a.from)
		a.done = a.done[:0]
	}
}

// settled ends the batch: what it has changed is committed with the ack that follows.
func (a *atomicState) settled() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.done)
	a.done = a.done[:0]
}

// goesOn is settled for a loop that stays in its function: its one event is done, by ahead.
// It reports whether the changes of the iteration can be committed.
func (a *atomicState) goesOn() bool {
	if a == nil {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.rows.Seal() != nil {
		return false // the handler finds that out again
	}
	a.rows.End()
	return true
}

// next begins the iteration over another event that ahead has taken.
func (a *atomicState) next(e *Event) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.call = a.rows.Mark()
	a.rows.Begin(e.ID)
}

// emit adds outputs to the iteration, and reports whether there is one.
func (a *atomicState) emit(outputs []store.Output) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.rows.Inside() {
		return false
	}
	for _, o := range outputs {
		a.rows.Emit(o)
	}
	return true
}
