package middleware

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/monotime"
)

// longestWait bounds the pause between two tries.
const longestWait = 30 * time.Second

// RetryInPlace calls the function up to attempts times in all with the events that
// failed. It waits first before the second try, then twice as long each time but at most
// 30 s; jitter shortens each wait by up to a half. The partition stands still meanwhile.
//
// Each try is a new call of the function, whose variables start over. Of a batch that
// failed in part (runnel.FailedEvents) only those events are tried again. Use it for
// hiccups of milliseconds. For failures that may last longer, must be counted over
// crashes, or should not delay other keys, there is runnel.Retry, an option of the
// processor. With both, all tries of RetryInPlace are one attempt of runnel.Retry.
//
// RetryInPlace gives up when ctx ends. It does not retry permanent failures: a record
// that cannot be decoded, and runnel.ErrNotConsumed. It panics if attempts is below 1 or
// first is negative.
func RetryInPlace(attempts int, first time.Duration) runnel.Middleware {
	if attempts < 1 || first < 0 {
		panic(fmt.Sprintf("middleware.RetryInPlace(%d, %v): want at least 1 attempt and no negative wait", attempts, first))
	}
	return func(next runnel.Handler) runnel.Handler {
		return func(ctx context.Context, b *runnel.Batch) error {
			batch, wait := b, min(first, longestWait)
			for try := 1; ; try++ {
				err := next(ctx, batch)
				failed := batch.Failed(err)
				if try == attempts || len(failed) == 0 || permanent(err) || !pause(ctx, wait) {
					return ofPart(err, batch, b)
				}
				batch, wait = part(batch, failed), min(2*wait, longestWait)
			}
		}
	}
}

func permanent(err error) bool {
	var bad *runnel.DecodeError
	return errors.As(err, &bad) || errors.Is(err, runnel.ErrNotConsumed)
}

// pause waits for about d, and reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	return ctx.Err() == nil && monotime.Sleep(ctx, d/2+rand.N(d/2+1))
}
