package runnel_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

// A ruled is a cluster of workers of one processor, and a producer with the rules
// in its hand.
type ruled struct {
	*runneltest.Cluster
	t      *testing.T
	rules  *runnel.Rules
	stream *runnel.Stream[item]
	n      *notes

	mu      sync.Mutex
	running int
}

// inRules runs fn with such a cluster in fake time. A record is noted when it is
// begun; takes, if not nil, is how long it takes.
func inRules(t *testing.T, partitions int, takes func(ctx context.Context, e *runnel.Event, i item) error, fn func(c *ruled)) {
	c := &ruled{t: t, n: new(notes)}
	opts := &runnel.StreamOptions{Partitions: partitions}
	runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
		app := runnel.New("contract", o)
		runnel.NewStream(app, "items", keyOfItem, opts).Process("p", runnel.Each(func(ctx context.Context, e *runnel.Event, i item) error {
			c.n.add(fmt.Sprint(i.N))
			c.count(1)
			defer c.count(-1)
			if takes != nil {
				return takes(ctx, e, i)
			}
			return nil
		}), nil)
		return app
	}, func(cluster *runneltest.Cluster) {
		c.Cluster = cluster
		app := runnel.New("contract", cluster.Options("sender"))
		defer app.Close()
		c.stream, c.rules = runnel.NewStream(app, "items", keyOfItem, opts), app.Rules()
		fn(c)
	})
}

func (c *ruled) count(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running += n
}

func (c *ruled) runs() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running
}

func (c *ruled) send(from, to int) {
	c.t.Helper()
	for n := from; n <= to; n++ {
		if _, err := c.stream.SendEvents(c.Context(), runnel.Outgoing[item]{Record: item{N: n}, Key: fmt.Sprint("k", n)}); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *ruled) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// was checks what has been begun, in order, after some time.
func (c *ruled) was(want string) {
	c.t.Helper()
	c.Sleep(30 * time.Second)
	if got := strings.Join(c.n.all(), " "); got != want {
		c.t.Errorf("begun: %q, want %q", got, want)
	}
}

func TestWhatIsPausedGoesOnAfterwards(t *testing.T) {
	for _, scope := range []runnel.Scope{runnel.AppScope(), runnel.StreamScope("items"), runnel.ProcessorScope("items", "p"), runnel.PartitionScope("items", "p", 0)} {
		t.Run(scope.String(), func(t *testing.T) {
			inRules(t, 1, nil, func(c *ruled) {
				ready(c.Cluster, "a")
				c.send(1, 2)
				c.was("1 2")
				c.must(c.rules.Pause(c.Context(), scope, nil))
				c.Sleep(time.Second)
				c.send(3, 5)
				c.was("1 2")
				c.must(c.rules.Unpause(c.Context(), scope))
				c.was("1 2 3 4 5")
			})
		})
	}
}

// A block and a pause of the same, removed in either order: both must be gone.
func TestBlockWins(t *testing.T) {
	for _, first := range []string{"pause", "block"} {
		t.Run("remove the "+first+" first", func(t *testing.T) {
			inRules(t, 1, nil, func(c *ruled) {
				ready(c.Cluster, "a")
				s := runnel.ProcessorScope("items", "p")
				remove := []func(context.Context, runnel.Scope) error{c.rules.Unpause, c.rules.Unblock}
				if first == "block" {
					remove[0], remove[1] = remove[1], remove[0]
				}
				c.must(c.rules.Pause(c.Context(), s, nil))
				c.must(c.rules.Block(c.Context(), s, nil))
				c.Sleep(time.Second)
				c.send(1, 1)
				c.was("")
				c.must(remove[0](c.Context(), s))
				c.was("")
				c.must(remove[1](c.Context(), s))
				c.was("1")
			})
		})
	}
}

func TestARuleForATimeEndsByItself(t *testing.T) {
	inRules(t, 1, nil, func(c *ruled) {
		ready(c.Cluster, "a")
		began := time.Now()
		c.must(c.rules.Pause(c.Context(), runnel.AppScope(), &runnel.RuleOptions{For: 10 * time.Minute, Why: "lunch", Who: "ada"}))
		c.Sleep(time.Second)
		c.send(1, 1)
		list, err := c.rules.List(c.Context())
		if err != nil || len(list) != 1 || list[0].Why != "lunch" || list[0].Who != "ada" || list[0].Until.Sub(list[0].At) != 10*time.Minute ||
			list[0].Kind != runnel.RulePause || list[0].Scope != runnel.AppScope() {
			t.Errorf("%+v, %v", list, err)
		}
		c.Wait(func() bool { return c.n.has("1") })
		if d := time.Since(began); d < 10*time.Minute || d > 10*time.Minute+time.Second {
			t.Errorf("begun after %v, want ten minutes", d)
		}
		if list, err := c.rules.List(c.Context()); err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// Wait returns when the function has returned, and not before; then nothing
// begins, though a worker joins and another one leaves.
func TestWaitReturnsWhenNothingRuns(t *testing.T) {
	inRules(t, 4, func(context.Context, *runnel.Event, item) error { time.Sleep(6 * time.Second); return nil }, func(c *ruled) {
		a := ready(c.Cluster, "a")
		c.send(1, 40)
		c.Wait(func() bool { return c.runs() == 4 })
		c.must(c.rules.Pause(c.Context(), runnel.StreamScope("items"), nil))
		began := time.Now()
		c.must(c.rules.Wait(c.Context(), runnel.StreamScope("items")))
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
		c.must(c.rules.Unpause(c.Context(), runnel.StreamScope("items")))
		c.Wait(func() bool { return len(c.n.all()) == 40 })
	})
}

func TestWaitWantsSomethingThatHolds(t *testing.T) {
	inRules(t, 1, nil, func(c *ruled) {
		for _, s := range []runnel.Scope{{}, runnel.StreamScope("a b"), runnel.AppScope()} {
			if err := c.rules.Wait(c.Context(), s); err == nil {
				t.Errorf("%s: no error", s)
			}
		}
		for what, err := range map[string]error{
			"no scope":   c.rules.Pause(c.Context(), runnel.Scope{}, nil),
			"bad name":   c.rules.Block(c.Context(), runnel.ProcessorScope("items", "p.q"), nil),
			"no time":    c.rules.Pause(c.Context(), runnel.AppScope(), &runnel.RuleOptions{For: -time.Second}),
			"no scope 2": c.rules.Unpause(c.Context(), runnel.Scope{}),
		} {
			if err == nil {
				t.Errorf("%s: no error", what)
			}
		}
		// Of a part of what is paused Wait may be asked, of more than that not.
		c.must(c.rules.Pause(c.Context(), runnel.ProcessorScope("items", "p"), nil))
		c.must(c.rules.Wait(c.Context(), runnel.PartitionScope("items", "p", 0)))
		if err := c.rules.Wait(c.Context(), runnel.StreamScope("items")); err == nil {
			t.Error("the stream is not paused as a whole")
		}
	})
}
