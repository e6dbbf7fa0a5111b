// An event that ends each worker becomes a dead letter, also where IDs are ahead of the server's clock: that was set back, or
// another program gives IDs of its own.

package runnel_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

func TestADeadlyEventWhoseIDIsAheadOfTheClock(t *testing.T) {
	for _, reads := range []runnel.Reads{runnel.ByGroup, runnel.ByPosition} {
		t.Run(fmt.Sprint(reads), func(t *testing.T) {
			var n notes
			fn := runnel.Each(func(ctx context.Context, e *runnel.Event, i item) error {
				n.add(attempt(ctx, e, i))
				if i.N == 1 {
					runneltest.WorkerOf(ctx).Kill()
				}
				return runneltest.Gate(ctx)
			})
			opts := &runnel.ProcessorOptions{Reads: reads, Lease: time.Second, Retry: &runnel.Retry{Max: 2, Order: runnel.OrderKey}}
			simulation{}.run(t, fn, opts, func(c *simulated) {
				one := xadd(1)
				one.ID = fmt.Sprint(time.Now().Add(time.Hour).UnixMilli(), "-0")
				c.must(c.Redis().XAdd(c.Context(), one).Err())
				c.must(c.Redis().XAdd(c.Context(), &redis.XAddArgs{Stream: one.Stream, Values: xadd(2).Values}).Err())
				for w := range 5 {
					c.Start(fmt.Sprint("w", w))
					c.Sleep(30 * time.Second)
				}
				if dead := deadLetters(t, c.Cluster, 0); len(dead) != 1 {
					t.Errorf("after %q there are the dead letters %q, want one", n.all(), dead)
				}
			})
		})
	}
}
