// Package middleware has middleware for processors.
//
//	orders.Process("printer", print, &runnel.ProcessorOptions{Middleware: []runnel.Middleware{
//		middleware.Log(nil),
//		middleware.DeadLetter(dead),
//		middleware.RetryInPlace(3, time.Second),
//	}})
//
// The first one is the outermost. In this order an event is tried three times before it
// becomes a dead letter, and the log shows the final outcome.
//
// A panic of the function is a *runnel.PanicError: an error like any other.
package middleware

import (
	"context"
	"errors"
	"slices"

	"github.com/runnel-go/runnel"
)

// ended reports whether ctx ended because the ownership did: the next owner decides what
// follows.
func ended(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return slices.ContainsFunc([]error{runnel.ErrLost, runnel.ErrReleased, runnel.ErrShutdown}, func(err error) bool {
		return errors.Is(cause, err)
	})
}

// part is the batch with only some of its events.
func part(b *runnel.Batch, events []*runnel.Event) *runnel.Batch {
	if len(events) == len(b.Events) {
		return b
	}
	p := *b
	p.Events = events
	return &p
}

// ofPart turns an error of a part into one of the whole batch: the events outside of the
// part did not fail.
func ofPart(err error, p, b *runnel.Batch) error {
	if err == nil || p == b {
		return err
	}
	return runnel.FailedEvents(err, p.Failed(err)...)
}
