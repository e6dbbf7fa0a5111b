package middleware

import (
	"context"
	"fmt"
	"time"

	"github.com/runnel-go/runnel"
)

// Expire skips events that were sent, or delayed events that were due, more than d ago:
// they are acked without being processed. The age is the difference between the worker's
// clock now and Redis' clock at the send. Expire panics if d is not positive.
func Expire(d time.Duration) runnel.Middleware {
	if d <= 0 {
		panic(fmt.Sprintf("middleware.Expire(%v): want a positive duration", d))
	}
	return func(next runnel.Handler) runnel.Handler {
		return func(ctx context.Context, b *runnel.Batch) error {
			oldest := time.Now().Add(-d)
			fresh := make([]*runnel.Event, 0, len(b.Events))
			for _, e := range b.Events {
				if !e.Enqueued().Before(oldest) || !e.Due().Before(oldest) {
					fresh = append(fresh, e)
				}
			}
			if len(fresh) == 0 {
				return nil
			}
			p := part(b, fresh)
			return ofPart(next(ctx, p), p, b)
		}
	}
}
