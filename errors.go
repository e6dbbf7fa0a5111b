package runnel

import (
	"errors"
	"fmt"

	"github.com/runnel-go/runnel/internal/worker"
)

// Causes of an ended iteration context (context.Cause).
var (
	ErrReleased = worker.ErrReleased // the partition was asked for by another worker, and Grace is over
	ErrLost     = worker.ErrLost     // the partition may have another owner already: what the handler did may be repeated there
	ErrShutdown = worker.ErrShutdown // the worker is stopping, and Grace is over
)

var (
	// ErrNotConsumed is what a ProcessFunc gets for returning nil without
	// having ranged over its events. It always halts the worker.
	ErrNotConsumed = errors.New("the processor returned without ranging over its events")

	// ErrClosed is returned by an App after Close.
	ErrClosed = errors.New("the app is closed")

	// ErrRunning is returned by Run while another Run of the app runs.
	ErrRunning = errors.New("the app runs already")

	// ErrNotReady is in the chain of what Ready returns.
	ErrNotReady = errors.New("not ready")
)

// A PanicError is a panic of a user's function, as an error.
type PanicError struct {
	Value any    // what it panicked with
	Stack []byte // where
}

// Error holds the value and the stack: whoever logs it sees where it was.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }

// Unwrap returns the value if that is an error, else nil.
func (e *PanicError) Unwrap() error { err, _ := e.Value.(error); return err }

// FailedEvents returns an error that says that only these events of a batch failed.
// All others are acked, whatever the policy, also those behind a failed one; with a Retry,
// name the ones behind it too if their order matters. An error that is not made by
// FailedEvents means that all events of the batch failed. The result is nil if err is nil.
// Events of other batches are passed over; if no event of this batch is named, all of it is
// acked, and the error is logged.
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

// Failed returns the events of the batch that err, returned by its Handler,
// says failed: all of them unless it came from FailedEvents, none if it is nil.
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
