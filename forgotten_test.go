// Redis that was flushed or set back, or has lost a consumer, costs no event that is there.

package runnel_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/runneltest"
)

// A processor that begins at the end has begun: what is sent after a flush is processed,
// also in a partition that its next owner never owned before.
func TestAFlushLosesNothingThatIsSentAfterItFromStartEnd(t *testing.T) {
	t.Parallel()
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
// has kept one cannot cancel another sender's event.
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

// slowAtThree notes what is processed, and takes 12 s for event 3 in worker a.
func slowAtThree(n *notes) runnel.ProcessFunc[item] {
	return runnel.Each(func(ctx context.Context, _ *runnel.Event, i item) error {
		if runneltest.WorkerOf(ctx).Name() == "a" && i.N == 3 {
			select {
			case <-time.After(12 * time.Second):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := runneltest.Gate(ctx); err != nil {
			return err
		}
		n.add(fmt.Sprint(i.N))
		return nil
	})
}

// An operator deletes the consumer of a live owner, which throws away what is pending:
// nothing of it is lost, whether the worker lives on or dies.
func TestADeletedConsumerLosesNothing(t *testing.T) {
	const log = "__strm:contract.items.0"
	for _, tt := range []struct {
		name  string
		more  bool          // another event is delivered then
		after time.Duration // then the worker is killed; 0: it is not
	}{
		{"the worker dies at once", false, time.Millisecond},
		{"the worker dies after it has seen it", true, 9 * time.Second},
		{"the worker lives on", true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var n notes
			cluster(t, 1, slowAtThree(&n), nil, func(c *runneltest.Cluster, send func(...int)) {
				a := ready(c, "a")
				for i := range 8 {
					send(i)
				}
				c.Sleep(time.Second)
				group := c.Redis().XInfoGroups(c.Context(), log).Val()[0].Name
				for _, consumer := range c.Redis().XInfoConsumers(c.Context(), log, group).Val() {
					if err := c.Redis().XGroupDelConsumer(c.Context(), log, group, consumer.Name).Err(); err != nil {
						t.Fatal(err)
					}
				}
				if tt.more {
					send(8)
				}
				if tt.after > 0 {
					c.Sleep(tt.after)
					a.Kill()
					c.Sleep(time.Millisecond) // until Redis knows: its blocked read would take what is sent
					c.Start("b")
				} else {
					c.Sleep(20 * time.Second)
				}
				if !tt.more {
					send(8)
				}
				send(9)
				c.Sleep(30 * time.Second)
				for i := range 10 {
					if !n.has(fmt.Sprint(i)) {
						t.Errorf("event %d was not processed", i)
					}
				}
				if pending := c.Redis().XPending(c.Context(), log, c.Redis().XInfoGroups(c.Context(), log).Val()[0].Name).Val(); pending.Count != 0 {
					t.Errorf("%d are pending", pending.Count)
				}
			})
		})
	}
}

// FLUSHALL takes the metadata away, which a full server does not take back: a member goes on
// without it, and Wait for its processor waits for it.
func TestWaitKnowsTheMembersOfAProcessorWithoutMetadata(t *testing.T) {
	inRules(t, 1, func(context.Context, *runnel.Event, item) error { time.Sleep(6 * time.Second); return nil }, func(c *ruled) {
		ready(c.Cluster, "a")
		c.send(1, 1)
		c.Wait(func() bool { return c.runs() == 1 })
		c.must(c.Redis().Del(c.Context(), c.Redis().Keys(c.Context(), "__meta:*").Val()...).Err())
		scope := admin.ProcessorScope("items", "p")
		c.must(c.rules.Pause(c.Context(), scope, nil))
		if err := c.rules.Wait(c.Context(), scope); err != nil || c.runs() != 0 {
			t.Errorf("Wait returned %v while %d functions ran", err, c.runs())
		}
	})
}

// The server's clock is set forward, which ends all locks and heartbeats at once: Wait does
// not take a member for dead whose function may run, also when others have removed it.
func TestWaitOutlastsHeartbeatsThatEndTooEarly(t *testing.T) {
	for _, reaped := range []bool{false, true} {
		t.Run(fmt.Sprint("reaped ", reaped), func(t *testing.T) {
			inRules(t, 1, func(context.Context, *runnel.Event, item) error { time.Sleep(6 * time.Second); return nil }, func(c *ruled) {
				ready(c.Cluster, "a")
				c.send(1, 1)
				c.Wait(func() bool { return c.runs() == 1 })
				scope := admin.AppScope()
				c.must(c.rules.Pause(c.Context(), scope, nil))
				result := make(chan error, 1)
				if reaped {
					go func() { result <- c.rules.Wait(c.Context(), scope) }()
					c.Sleep(10 * time.Millisecond)
				}
				step := func(pattern string) {
					keys := c.Redis().Keys(c.Context(), pattern).Val()
					if len(keys) > 0 {
						c.must(c.Redis().Del(c.Context(), keys...).Err())
					}
				}
				step("__lock:*")
				step("__beat:*")
				if reaped {
					step("__memb:*")
				} else {
					go func() { result <- c.rules.Wait(c.Context(), scope) }()
				}
				if err := <-result; err != nil || c.runs() != 0 {
					t.Errorf("Wait returned %v while %d functions ran", err, c.runs())
				}
			})
		})
	}
}
