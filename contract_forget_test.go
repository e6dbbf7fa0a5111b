package runnel_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

// A processor that begins at the end has begun: what is sent after a flush is processed,
// also in a partition that its next owner never owned before.
func TestAFlushLosesNothingThatIsSentAfterItFromStartEnd(t *testing.T) {
	const partitions, flushes, each = 16, 4, 50
	var n notes
	fn := runnel.Each(func(_ context.Context, _ *runnel.Event, i item) error { n.add(fmt.Sprint(i.N)); return nil })
	cluster(t, partitions, fn, &runnel.ProcessorOptions{Start: runnel.StartEnd}, func(c *runneltest.Cluster, send func(...int)) {
		ready(c, "a")
		ready(c, "b")
		c.Sleep(20 * time.Second)
		for flush := range flushes {
			if err := c.Redis().FlushAll(c.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			for i := range each {
				send(flush*each + i)
			}
			c.Sleep(20 * time.Second)
		}
		missing := 0
		for i := range flushes * each {
			if !n.has(fmt.Sprint(i)) {
				missing++
			}
		}
		if missing > 0 {
			t.Errorf("%d of %d events that were sent after a flush were never processed", missing, flushes*each)
		}
	})
}

// The ID of a delayed event is given once, whatever Redis forgets: an application that
// has kept one cannot take back an event of somebody else.
func TestTheIDOfADelayedEventIsNotGivenAgain(t *testing.T) {
	for name, forget := range map[string]func(c *runneltest.Cluster) error{
		"flush": func(c *runneltest.Cluster) error { return c.Redis().FlushAll(c.Context()).Err() },
		"counter": func(c *runneltest.Cluster) error {
			return c.Redis().Del(c.Context(), "__dueseq:contract.items.0").Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			fn := runnel.Each(func(context.Context, *runnel.Event, item) error { return nil })
			cluster(t, 1, fn, nil, func(c *runneltest.Cluster, _ func(...int)) {
				app := runnel.New("contract", c.Options("other sender"))
				defer app.Close()
				s := runnel.NewStream(app, "items", keyOfItem, &runnel.StreamOptions{Partitions: 1})
				given := map[string]bool{}
				for range 3 {
					var last string
					for n := range 5 {
						sent, err := s.SendAfter(c.Context(), time.Hour, item{n})
						if err != nil {
							t.Fatal(err)
						}
						id := sent[0].ID
						if given[id] || id <= last {
							t.Errorf("%s is given behind %s, again: %v", id, last, given[id])
						}
						given[id], last = true, id
					}
					if err := forget(c); err != nil {
						t.Fatal(err)
					}
					c.Sleep(time.Second)
				}
			})
		})
	}
}

// A leader that lives on runs no due time again, also when Redis goes back to a state
// from before the claims.
func TestADurableTaskRunsNoDueTimeAgainAfterRedisWentBack(t *testing.T) {
	for _, catchUp := range []runnel.CatchUp{runnel.CatchUpOnce, runnel.CatchUpNone, runnel.CatchUpAll} {
		for kind, register := range map[string]func(app *runnel.App, fn runnel.TaskFunc){
			"Every": func(app *runnel.App, fn runnel.TaskFunc) { app.Every("t", time.Second, fn, durably(catchUp)) },
			"Cron":  func(app *runnel.App, fn runnel.TaskFunc) { app.Cron("t", "@every 1s", fn, durably(catchUp)) },
		} {
			t.Run(fmt.Sprint(kind, " ", catchUp), func(t *testing.T) {
				var n notes
				tasked(t, func(app *runnel.App, _ string) {
					register(app, func(ctx context.Context) error { n.add(clock(runnel.DueTime(ctx))); return nil })
				}, func(c *runneltest.Cluster) {
					c.Start("a")
					c.Sleep(10 * time.Second)
					before := c.Redis().HGet(c.Context(), "__task:contract", "t").Val()
					c.Sleep(5 * time.Second)
					if err := c.Redis().HSet(c.Context(), "__task:contract", "t", before).Err(); err != nil || before == "" {
						t.Fatal(before, err)
					}
					c.Sleep(10*time.Second + 500*time.Millisecond)
				})
				got := n.all()
				if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
					t.Errorf("due times are not in order, or come twice: %v", got)
				}
				if len(got) < 20 {
					t.Errorf("ran %d times in 25 s, of which Redis has forgotten 5", len(got))
				}
			})
		}
	}
}
