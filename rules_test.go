// A worker obeys pauses and blocks, even while it cannot read them anew, and repeats nothing
// afterwards.

package runnel_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/runneltest"
)

// A ruled is a simulated cluster with the client that sets its rules.
type ruled struct {
	*simulated
	rules *admin.Client
	n     *notes

	mu      sync.Mutex
	running int
}

// inRules runs fn with such a cluster. A record is noted when its processing begins; takes, if
// not nil, is how long it takes.
func inRules(t *testing.T, partitions int, takes func(ctx context.Context, e *runnel.Event, i item) error, fn func(c *ruled)) {
	c := &ruled{n: new(notes)}
	process := runnel.Each(func(ctx context.Context, e *runnel.Event, i item) error {
		c.n.add(fmt.Sprint(i.N))
		c.count(1)
		defer c.count(-1)
		if takes != nil {
			return takes(ctx, e, i)
		}
		return nil
	})
	simulate(t, nil, &runnel.StreamOptions{Partitions: partitions}, process, nil, func(s *simulated) {
		c.simulated, c.rules = s, admin.New(s.app)
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

// was checks what has been begun, in order, after some time.
func (c *ruled) was(want string) {
	c.t.Helper()
	c.Sleep(30 * time.Second)
	if got := strings.Join(c.n.all(), " "); got != want {
		c.t.Errorf("begun: %q, want %q", got, want)
	}
}

func TestWhatIsPausedGoesOnAfterwards(t *testing.T) {
	t.Parallel()
	for _, scope := range []admin.Scope{admin.AppScope(), admin.StreamScope("items"), admin.ProcessorScope("items", "p"), admin.PartitionScope("items", "p", 0)} {
		t.Run(scope.String(), func(t *testing.T) {
			inRules(t, 1, nil, func(c *ruled) {
				ready(c.Cluster, "a")
				c.send(1, 2)
				c.was("1 2")
				c.must(c.rules.Pause(c.Context(), scope, nil))
				c.Sleep(time.Second)
				c.send(3, 5)
				c.was("1 2")
				c.must(c.rules.Resume(c.Context(), scope))
				c.was("1 2 3 4 5")
			})
		})
	}
}

// Ten thousand events of a hundred keys, sent during a pause, are processed once
// each, in the order of their keys.
func TestTenThousandEventsOfAPause(t *testing.T) {
	t.Parallel()
	const keys = 100
	events := tier.Large(10_000)
	last := map[string]int{}
	var mu sync.Mutex
	count := 0
	inRules(t, 4, func(_ context.Context, e *runnel.Event, i item) error {
		mu.Lock()
		defer mu.Unlock()
		if i.N <= last[e.Key()] {
			t.Errorf("key %s: %d after %d", e.Key(), i.N, last[e.Key()])
		}
		last[e.Key()] = i.N
		count++
		return nil
	}, func(c *ruled) {
		ready(c.Cluster, "a")
		ready(c.Cluster, "b")
		c.must(c.rules.Pause(c.Context(), admin.StreamScope("items"), nil))
		c.must(c.rules.Wait(c.Context(), admin.StreamScope("items")))
		out := make([]runnel.Outgoing[item], events)
		for n := range out {
			out[n] = runnel.Outgoing[item]{Record: item{N: n + 1}, Key: fmt.Sprint("k", n%keys)}
		}
		_, err := c.stream.SendEvents(c.Context(), out...)
		c.must(err)
		c.Sleep(time.Minute)
		if n := len(c.n.all()); n != 0 {
			t.Errorf("%d began during the pause", n)
		}
		c.must(c.rules.Resume(c.Context(), admin.StreamScope("items")))
		c.Wait(func() bool { return len(c.n.all()) >= events })
		c.Sleep(time.Minute)
	})
	if count != events || len(last) != keys {
		t.Errorf("processed %d events of %d keys", count, len(last))
	}
}

// A block and a pause of the same, removed in either order: both must be gone.
func TestBlockWins(t *testing.T) {
	for _, first := range []string{"pause", "block"} {
		t.Run("remove the "+first+" first", func(t *testing.T) {
			inRules(t, 1, nil, func(c *ruled) {
				ready(c.Cluster, "a")
				s := admin.ProcessorScope("items", "p")
				remove := []func(context.Context, admin.Scope) error{c.rules.Resume, c.rules.Unblock}
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
	t.Parallel()
	inRules(t, 1, nil, func(c *ruled) {
		ready(c.Cluster, "a")
		began := time.Now()
		c.must(c.rules.Pause(c.Context(), admin.AppScope(), &admin.RuleOptions{For: 10 * time.Minute, Why: "lunch", Who: "ada"}))
		c.Sleep(time.Second)
		c.send(1, 1)
		list, err := c.rules.Rules(c.Context())
		if err != nil || len(list) != 1 || list[0].Why != "lunch" || list[0].Who != "ada" || list[0].Until.Sub(list[0].At) != 10*time.Minute ||
			list[0].Kind != admin.RulePause || list[0].Scope != admin.AppScope() {
			t.Errorf("%+v, %v", list, err)
		}
		c.Wait(func() bool { return c.n.has("1") })
		if d := time.Since(began); d < 10*time.Minute || d > 10*time.Minute+time.Second {
			t.Errorf("begun after %v, want ten minutes", d)
		}
		if list, err := c.rules.Rules(c.Context()); err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// A pause between two tries of middleware, and a release meanwhile: what was not
// begun is not done, whatever middleware makes of the error, and not a failure.
func TestAReleaseDuringAPauseDoesNotBlameTheEvent(t *testing.T) {
	var n notes
	swallow := func(next runnel.Handler) runnel.Handler {
		return func(ctx context.Context, b *runnel.Batch) error {
			time.Sleep(10 * time.Second) // the pause comes now
			if err := next(ctx, b); err != nil {
				n.add(fmt.Sprint("error, context ended: ", ctx.Err() != nil))
			}
			return nil
		}
	}
	fn := runnel.Each(func(ctx context.Context, _ *runnel.Event, _ item) error {
		n.add("processed by " + runneltest.WorkerOf(ctx).Name())
		return nil
	})
	simulate(t, nil, &runnel.StreamOptions{Partitions: 1}, fn, middlewares(swallow), func(c *simulated) {
		rules := admin.New(c.app)
		a := ready(c.Cluster, "a")
		c.send(1)
		c.Sleep(5 * time.Second)
		c.must(rules.Pause(c.Context(), admin.AppScope(), nil))
		c.Sleep(time.Minute)
		if err := a.Stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		ready(c.Cluster, "b")
		c.Sleep(time.Minute)
		c.must(rules.Resume(c.Context(), admin.AppScope()))
		c.Wait(func() bool { return n.has("processed by b") })
	})
	if got, want := strings.Join(n.all(), "; "), "error, context ended: true; processed by b"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// If they cannot be read, the last known rules hold; a worker that has never read them
// starts nothing; and that there are none any more is no error.
func TestRulesThatCannotBeReadHold(t *testing.T) {
	const key = "__rules:contract"
	inRules(t, 1, nil, func(c *ruled) {
		app := admin.AppScope()
		a := ready(c.Cluster, "a")
		c.must(c.rules.Pause(c.Context(), app, nil))
		c.Sleep(time.Second)
		c.send(1, 1)
		c.must(c.Redis().Del(c.Context(), key).Err())
		c.must(c.Redis().Set(c.Context(), key, "nonsense", 0).Err())
		c.was("") // the pause is still known
		c.must(a.Stop())
		ready(c.Cluster, "b")
		c.was("") // nothing is known
		c.must(c.Redis().Del(c.Context(), key).Err())
		c.was("1") // nothing is paused
		c.must(c.Redis().HSet(c.Context(), key, "generation", 7, "pause app", `{"v":2}`).Err())
		c.send(2, 2)
		c.was("1 2") // of another version; before, nothing was
		c.must(c.Redis().Del(c.Context(), key).Err())
		c.must(c.rules.Block(c.Context(), app, nil))
		c.Sleep(time.Second)
		c.send(3, 3)
		c.must(c.Redis().FlushAll(c.Context()).Err())
		c.Sleep(time.Minute)
		c.send(4, 4)
		c.Sleep(30 * time.Second)
		// A flush forgets events, and rules: the third one runs if its worker had read
		// it and sees that there are no rules before it sees that its lock is gone.
		if got := strings.Replace(strings.Join(c.n.all(), " "), " 3", "", 1); got != "1 2 4" {
			t.Errorf("begun: %q, want 1 2 4", got)
		}
	})
}

// Messages may get lost: heartbeats bring the news.
func TestRulesAreSeenWithoutTheirMessage(t *testing.T) {
	inRules(t, 1, nil, func(c *ruled) {
		ready(c.Cluster, "a")
		c.must(c.Redis().HSet(c.Context(), "__rules:contract", "generation", 7, "block stream:items", `{"v":1,"who":"root","why":"","at":1,"until":0}`).Err())
		c.Sleep(5 * time.Second)
		c.send(1, 1)
		c.was("")
		c.must(c.rules.Unblock(c.Context(), admin.StreamScope("items")))
		began := time.Now()
		c.Wait(func() bool { return c.n.has("1") })
		if d := time.Since(began); d > time.Second {
			t.Errorf("with its message it took %v", d)
		}
	})
}

// A worker whose control connection broke looks at the rules when it is back: the
// message may have come between. Its heartbeats would tell a third of Lease
// later.
func TestARuleIsSeenAfterTheControlConnectionBroke(t *testing.T) {
	srv := redistest.Start(t)
	rdb := srv.Client(t)
	app := runnel.New("contract", &runnel.Options{RedisURL: srv.URL(), Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { app.Close() })
	runnel.NewStream(app, "items", keyOfItem, &runnel.StreamOptions{Partitions: 1}).Process("p",
		runnel.Each(func(context.Context, *runnel.Event, item) error { return nil }), &runnel.ProcessorOptions{Lease: 2 * time.Minute})
	running(t, app)
	id := ""
	redistest.Eventually(t, "the control connection", func() bool {
		for _, line := range strings.Split(rdb.ClientList(t.Context()).Val(), "\n") {
			if strings.Contains(line, " cmd=xread ") {
				_, id, _ = strings.Cut(strings.Fields(line)[0], "id=")
			}
		}
		return id != ""
	})
	pipe := rdb.Pipeline()
	pipe.Do(t.Context(), "CLIENT", "KILL", "ID", id)
	pipe.HSet(t.Context(), "__rules:contract", "pause app", `{"v":1,"who":"ada","why":"","at":1,"until":0}`, "generation", time.Now().UnixMilli())
	pipe.XAdd(t.Context(), &redis.XAddArgs{Stream: "__ctrl:contract", Values: []any{"v", "1", "kind", "rules"}})
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := admin.New(app).Wait(ctx, admin.AppScope()); err != nil {
		t.Errorf("the worker does not know of the pause: %v", err)
	}
}
