// Wait returns once nothing runs that a rule holds up.

package runnel_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
)

// Wait returns when the function has returned, and not before; then nothing
// begins, though a worker joins and another one leaves.
func TestWaitReturnsWhenNothingRuns(t *testing.T) {
	t.Parallel()
	inRules(t, 4, func(context.Context, *runnel.Event, item) error { time.Sleep(6 * time.Second); return nil }, func(c *ruled) {
		a := ready(c.Cluster, "a")
		c.send(1, 40)
		c.Wait(func() bool { return c.runs() == 4 })
		c.must(c.rules.Pause(c.Context(), admin.StreamScope("items"), nil))
		began := time.Now()
		c.must(c.rules.Wait(c.Context(), admin.StreamScope("items")))
		if c.runs() != 0 {
			t.Errorf("%d functions run", c.runs())
		}
		if d := time.Since(began); d < 5*time.Second || d > 8*time.Second {
			t.Errorf("waited for %v", d)
		}
		begun := len(c.n.all())
		ready(c.Cluster, "b")
		c.Sleep(time.Minute)
		c.must(a.Stop())
		c.Sleep(time.Minute)
		ready(c.Cluster, "d")
		c.Sleep(time.Minute)
		if n := len(c.n.all()); n != begun {
			t.Errorf("%d began while it was paused", n-begun)
		}
		c.must(c.rules.Resume(c.Context(), admin.StreamScope("items")))
		c.Wait(func() bool { return len(c.n.all()) == 40 })
	})
}

func TestWaitWantsSomethingThatHolds(t *testing.T) {
	inRules(t, 1, nil, func(c *ruled) {
		for _, s := range []admin.Scope{{}, admin.StreamScope("a b"), admin.AppScope()} {
			if err := c.rules.Wait(c.Context(), s); err == nil {
				t.Errorf("%s: no error", s)
			}
		}
		for what, err := range map[string]error{
			"no scope":   c.rules.Pause(c.Context(), admin.Scope{}, nil),
			"bad name":   c.rules.Block(c.Context(), admin.ProcessorScope("items", "p.q"), nil),
			"no time":    c.rules.Pause(c.Context(), admin.AppScope(), &admin.RuleOptions{For: -time.Second}),
			"no scope 2": c.rules.Resume(c.Context(), admin.Scope{}),
		} {
			if err == nil {
				t.Errorf("%s: no error", what)
			}
		}
		// Wait accepts a part of a paused scope, and no larger scope.
		c.must(c.rules.Pause(c.Context(), admin.ProcessorScope("items", "p"), nil))
		c.must(c.rules.Wait(c.Context(), admin.PartitionScope("items", "p", 0)))
		if err := c.rules.Wait(c.Context(), admin.StreamScope("items")); err == nil {
			t.Error("the stream is not paused as a whole")
		}
	})
}

// Wait returns for partitions that never had an event, and for partitions whose event fails and
// is parked meanwhile.
func TestWaitReturnsOfIdleAndOfFailingPartitions(t *testing.T) {
	var n notes
	retry := &runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 3, MinBackoff: time.Second, Jitter: -1}}
	fn := runnel.Each(func(_ context.Context, e *runnel.Event, _ item) error {
		n.add(fmt.Sprint("attempt ", e.Attempt))
		time.Sleep(5 * time.Second)
		if e.Attempt < 2 {
			return errBad
		}
		return nil
	})
	simulate(t, nil, nil, fn, retry, func(c *simulated) {
		ready(c.Cluster, "a")
		rules, ctx := admin.New(c.app), c.Context()
		began := time.Now()
		c.must(rules.Pause(ctx, admin.AppScope(), nil))
		c.must(rules.Wait(ctx, admin.AppScope()))
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("idle: waited for %v", d)
		}
		c.must(rules.Resume(ctx, admin.AppScope()))
		c.send(1)
		c.Wait(func() bool { return n.has("attempt 1") })
		c.must(rules.Pause(ctx, admin.AppScope(), nil))
		c.must(rules.Wait(ctx, admin.AppScope()))
		c.Sleep(time.Minute)
		if n.has("attempt 2") {
			t.Error("attempted again while it was paused")
		}
		c.must(rules.Resume(ctx, admin.AppScope()))
		c.Wait(func() bool { return n.has("attempt 2") })
	})
}
