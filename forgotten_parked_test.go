// A failover to a replica that was behind forgets that events were parked, or that they are done: they are processed all the same.

package runnel_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
)

const (
	itemsLog    = "__strm:contract.items.0"
	itemsParked = "__parked:contract.items.p.0"
	itemsRetry  = "__retry:contract.items.p.0"
)

// forgetReads has Redis forget what was delivered and parked, as a replica that did not come so far.
func (c *simulated) forgetReads() {
	c.t.Helper()
	rdb, ctx := c.Redis(), c.Context()
	group := rdb.XInfoGroups(ctx, itemsLog).Val()[0].Name
	rdb.XGroupDestroy(ctx, itemsLog, group)
	rdb.Del(ctx, itemsParked, itemsRetry)
	if err := rdb.XGroupCreate(ctx, itemsLog, group, "0").Err(); err != nil {
		c.t.Fatal(err)
	}
}

// The first event fails. The next one is being processed, and others wait in a full buffer, when a refresh finds that they are not
// pending any more. Or the first one is still being processed when the server forgets, and fails behind that.
func TestAParkIsForgotten(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint("fails behind it: ", late), func(t *testing.T) {
			var n notes
			fn := runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
				switch first := e.Attempt == 1 && !e.Redelivered; {
				case i.N == 1 && first && late:
					time.Sleep(300 * time.Millisecond)
					return errBad
				case i.N == 1 && first:
					return errBad
				case i.N == 2 && first:
					time.Sleep(10 * time.Second)
				}
				n.add(fmt.Sprint(i.N))
				return nil
			})
			opts := &runnel.ProcessorOptions{
				Lease: 9 * time.Second, Reads: runnel.ByGroup, Prefetch: 2,
				Retry: &runnel.Retry{Max: 5, MinBackoff: 20 * time.Second, MaxBackoff: 20 * time.Second, Order: runnel.OrderKey},
			}
			simulation{}.run(t, fn, opts, func(c *simulated) {
				ready(c.Cluster, "a")
				c.send(1, 2, 3, 4, 5, 6)
				c.Sleep(100 * time.Millisecond)
				c.forgetReads()
				c.Sleep(time.Minute)
				for i := range 6 {
					if !n.has(fmt.Sprint(i + 1)) {
						t.Errorf("%d was not processed: %v", i+1, n.all())
					}
				}
			})
		})
	}
}

// An event is parked, and processed; then the server forgets that. Its owner lives on.
func TestTheEndOfAParkedEventIsForgotten(t *testing.T) {
	for _, reads := range []runnel.Reads{runnel.ByGroup, runnel.ByPosition} {
		t.Run(fmt.Sprint(reads), func(t *testing.T) {
			var n notes
			fn := runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
				n.add(fmt.Sprint(i.N, "#", e.Attempt, " ", e.Epoch))
				if e.Attempt == 1 {
					return errBad
				}
				return nil
			})
			opts := &runnel.ProcessorOptions{Lease: 3 * time.Second, Reads: reads, Retry: &runnel.Retry{Max: 5, MinBackoff: 10 * time.Second, MaxBackoff: 10 * time.Second}}
			simulation{}.run(t, fn, opts, func(c *simulated) {
				rdb, ctx := c.Redis(), c.Context()
				a := ready(c.Cluster, "a")
				c.send(1)
				c.Sleep(5 * time.Second)
				parked, states := rdb.HGetAll(ctx, itemsParked).Val(), rdb.HGetAll(ctx, itemsRetry).Val()
				c.Sleep(10 * time.Second)
				if len(states) != 1 || rdb.Exists(ctx, itemsParked, itemsRetry).Val() != 0 || len(n.all()) != 2 {
					t.Fatalf("%d were parked; %v", len(states), n.all())
				}
				rdb.HSet(ctx, itemsParked, parked)
				rdb.HSet(ctx, itemsRetry, states)
				a.Cut()
				c.Sleep(30 * time.Second)
				if got := n.all(); len(got) != 3 || got[2] <= got[1] || rdb.Exists(ctx, itemsParked).Val() != 0 {
					t.Errorf("processed %v, want it once more by the next owner; parked are %v", got, rdb.HKeys(ctx, itemsParked).Val())
				}
			})
		})
	}
}
