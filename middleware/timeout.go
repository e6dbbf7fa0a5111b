package middleware

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runnel-go/runnel"
)

// ErrTimeout is in the chain of the cause of a context that Timeout ended.
var ErrTimeout = errors.New("middleware.Timeout")

// Timeout ends the context of an iteration (Events.Context, the ctx of Each and
// EachBatch) after d. An error that the function returns from then on has the
// cause, with ErrTimeout, in its chain; a function that does not look at its
// context is not stopped. It panics if d is not positive.
//
// ProcessorOptions.Timeout is the plainer choice: it bounds each call of the
// function wherever middleware stands, and reports a function that does not
// return. Use this one to bound something else: outside Retry it is all tries
// together, and outside middleware of your own also what that does.
func Timeout(d time.Duration) runnel.Middleware {
	if d <= 0 {
		panic(fmt.Sprintf("middleware.Timeout(%v): want a positive duration", d))
	}
	cause := fmt.Errorf("%w: the iteration took longer than %v", ErrTimeout, d)
	return func(next runnel.Handler) runnel.Handler {
		return func(ctx context.Context, b *runnel.Batch) error {
			ctx, cancel := context.WithTimeoutCause(ctx, d, cause)
			defer cancel()
			err := next(ctx, b)
			if err != nil && context.Cause(ctx) == cause {
				return fmt.Errorf("%w: %w", cause, err)
			}
			return err
		}
	}
}
