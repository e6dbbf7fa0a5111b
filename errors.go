package runnel

import (
	"errors"
	"fmt"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/worker"
)

// Causes of an ended iteration context (context.Cause).
var (
	ErrReleased error // another worker requested the partition, and Grace is over
	ErrLost     error // the partition may have another owner already: what the handler did may be repeated there
	ErrShutdown error // the worker is stopping, and Grace is over
)

// init takes the errors of internal packages, whose names do not belong into the
// documentation of this one.
func init() {
	ErrReleased, ErrLost, ErrShutdown = worker.ErrReleased, worker.ErrLost, worker.ErrShutdown
	ErrStreamFull, ErrSelfBlock, ErrNotReplicated = store.ErrStreamFull, store.ErrSelfBlock, redisconn.ErrNotReplicated
}

var (
	// ErrNotConsumed is the error of a ProcessFunc that returned nil without having
	// ranged over its events. It always halts the worker.
	ErrNotConsumed = errors.New("the processor returned without ranging over its events")

	// ErrClosed is returned by an App after Close.
	ErrClosed = errors.New("the app is closed")

	// ErrRunning is returned by Run while another Run of the app runs.
	ErrRunning = errors.New("the app runs already")

	// ErrNotReady is in the chain of the errors of Ready.
	ErrNotReady = errors.New("not ready")
)

// A PanicError is a panic of a user's function, as an error.
type PanicError struct {
	Value any    // what it panicked with
	Stack []byte // where
}

// Error returns the value and the stack, so that a log shows where the panic was.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }

// Unwrap returns the value if that is an error, else nil.
func (e *PanicError) Unwrap() error { err, _ := e.Value.(error); return err }

// FailedEvents returns an error that marks only these events of a batch as failed. All
// others are acked, whatever the policy, even later ones; with a Retry, include the later
// ones whose order matters. Any other error means that all events of the batch failed.
// The result is nil if err is nil. Events of other batches are ignored; if no event of
// this batch is named, the whole batch is acked and the error is logged.
func FailedEvents(err error, events ...*Event) error {
	if err == nil {
		return nil
	}
	return &failedEvents{err, events}
}

type failedEvents struct {
	err    error
	events []*Event
}

func (e *failedEvents) Error() string { return e.err.Error() }
func (e *failedEvents) Unwrap() error { return e.err }

// Failed returns the events of the batch that failed, by the error of its Handler: all of
// them unless err came from FailedEvents, none if err is nil.
func (b *Batch) Failed(err error) []*Event {
	var f *failedEvents
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &f):
		return b.Events
	}
	in := make(map[*Event]bool, len(f.events))
	for _, e := range f.events {
		in[e] = true
	}
	var out []*Event
	for _, e := range b.Events {
		if in[e] {
			out = append(out, e)
		}
	}
	return out
}
