// A task runs on every worker or on the leader, never beside itself, and its failures stop nothing.
// A leader that is gone is replaced.

package runnel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/runneltest"
)

var onLeader = &runnel.TaskOptions{Leader: true}

// tasked simulates workers of an app that has tasks only.
func tasked(t *testing.T, register func(app *runnel.App, worker string), run func(c *runneltest.Cluster)) {
	t.Helper()
	runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
		app := runnel.New("contract", o)
		register(app, o.WorkerName)
		return app
	}, run)
}

func (n *notes) count(line string) int {
	c := 0
	for _, l := range n.all() {
		if l == line {
			c++
		}
	}
	return c
}

func TestATaskRunsOnceOnEveryWorker(t *testing.T) {
	var n notes
	tasked(t, func(app *runnel.App, worker string) {
		app.Task("once", func(context.Context) error { n.add(worker); return nil }, nil)
	}, func(c *runneltest.Cluster) {
		c.Start("a")
		c.Sleep(time.Minute)
		c.Start("b")
		c.Sleep(time.Hour)
	})
	if got := n.all(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("ran on %v", got)
	}
}

// Every begins after its interval, Cron at the times of its line; neither
// overlaps itself, and what became due meanwhile is left out.
func TestEveryAndCronNeverOverlapThemselves(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		register   func(app *runnel.App, fn runnel.TaskFunc)
	}{
		{"Every", "1m0s 2m0s 5m0s 6m0s", func(app *runnel.App, fn runnel.TaskFunc) { app.Every("t", time.Minute, fn, nil) }},
		{"Cron", "1m0s 2m0s 5m0s 6m0s", func(app *runnel.App, fn runnel.TaskFunc) { app.Cron("t", "* * * * *", fn, nil) }},
		{"Cron every", "1m0s 2m0s 5m30s 6m30s", func(app *runnel.App, fn runnel.TaskFunc) { app.Cron("t", "@every 60s", fn, nil) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var n notes
			tasked(t, func(app *runnel.App, _ string) {
				began := time.Now()
				tt.register(app, func(ctx context.Context) error {
					n.add(time.Since(began).Round(time.Second).String())
					if len(n.all()) == 2 {
						time.Sleep(150 * time.Second)
					}
					return nil
				})
			}, func(c *runneltest.Cluster) {
				c.Start("a")
				c.Sleep(6*time.Minute + 45*time.Second)
			})
			if got := strings.Join(n.all(), " "); got != tt.want {
				t.Errorf("ran after %s, want %s", got, tt.want)
			}
		})
	}
}

// A line with a fixed hour comes once a day where clocks change, also for the leader that keeps it in Redis.
func TestCronWhereClocksChange(t *testing.T) {
	tier.Sequential(t)
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, begin, want string }{
		{"forward", "2000-03-25T23:50:00Z", "03-26 01:00"},
		{"back", "2000-10-28T23:50:00Z", "10-29 00:30"},
	} {
		for _, durable := range []bool{false, true} {
			t.Run(fmt.Sprint(tt.name, " durable ", durable), func(t *testing.T) {
				var n notes
				tasked(t, func(app *runnel.App, _ string) {
					app.Cron("t", "30 2 * * *", func(ctx context.Context) error {
						n.add(runnel.DueTime(ctx).UTC().Format("01-02 15:04"))
						return nil
					}, &runnel.TaskOptions{TimeZone: berlin, Leader: durable, Durable: durable})
				}, func(c *runneltest.Cluster) {
					begin, err := time.Parse(time.RFC3339, tt.begin)
					if err != nil {
						t.Fatal(err)
					}
					c.Sleep(time.Until(begin))
					c.Start("a")
					c.Sleep(3 * time.Hour)
				})
				if got := strings.Join(n.all(), " "); got != tt.want {
					t.Errorf("ran at %s, want %s", got, tt.want)
				}
			})
		}
	}
}

func TestATaskThatPanicsOrFailsStopsNothing(t *testing.T) {
	t.Parallel()
	var n notes
	fn := runnel.Each(func(_ context.Context, _ *runnel.Event, i item) error { n.add(fmt.Sprint("event ", i.N)); return nil })
	var log redistest.Log
	runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
		o.Logger = log.Logger()
		app := runnel.New("contract", o)
		runnel.NewStream(app, "items", keyOfItem, &runnel.StreamOptions{Partitions: 1}).Process("p", fn, nil)
		app.Task("once", func(context.Context) error { explode("oh no"); return nil }, nil)
		app.Every("lead", time.Minute, func(context.Context) error { n.add("lead"); explode("still no"); return nil }, onLeader)
		app.Cron("cron", "* * * * *", func(context.Context) error { n.add("cron"); return errors.New("no luck") }, nil)
		return app
	}, func(c *runneltest.Cluster) {
		a := ready(c, "a")
		c.Sleep(10*time.Minute + time.Second)
		app := runnel.New("contract", c.Options("sender"))
		defer app.Close()
		s := runnel.NewStream(app, "items", keyOfItem, &runnel.StreamOptions{Partitions: 1})
		if err := s.Send(c.Context(), items(7)...); err != nil {
			t.Error(err)
		}
		c.Wait(func() bool { return n.has("event 7") })
		if err := a.Stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	if l, c := n.count("lead"), n.count("cron"); l < 9 || c < 9 {
		t.Errorf("in ten minutes the leader's ran %d times, cron %d times", l, c)
	}
	for _, want := range []string{"task=once", "panic: oh no", "explode", "task=lead", "panic: still no", "task=cron", "err=\"no luck\"", "level=ERROR"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
}

// All three kinds of leader-only tasks run on one worker, and Task once per term.
func TestLeaderOnlyTasksRunOnTheLeader(t *testing.T) {
	var n notes
	tasked(t, func(app *runnel.App, worker string) {
		note := func(kind string) runnel.TaskFunc {
			return func(context.Context) error { n.add(kind + " " + worker); return nil }
		}
		app.Task("task", note("task"), onLeader)
		app.Every("every", time.Minute, note("every"), onLeader)
		app.Cron("cron", "* * * * *", note("cron"), onLeader)
	}, func(c *runneltest.Cluster) {
		a := c.Start("a")
		c.Wait(func() bool { return n.has("task a") })
		b := c.Start("b")
		c.Sleep(5*time.Minute + time.Second)
		for _, kind := range []string{"task b", "every b", "cron b"} {
			if n.has(kind) {
				t.Errorf("%s, while a leads", kind)
			}
		}
		if err := a.Stop(); err != nil {
			t.Error(err)
		}
		c.Sleep(5*time.Minute + time.Second)
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, name := range []string{"a", "b"} {
		once, every, cron := n.count("task "+name), n.count("every "+name), n.count("cron "+name)
		if once != 1 || every < 4 || every > 5 || cron != 5 {
			t.Errorf("%s: Task ran %d times, Every %d, Cron %d; want once, and each minute of five", name, once, every, cron)
		}
	}
}

// The context of a leader-only task ends with the term, before another worker
// begins one, though the old leader cannot reach Redis; and when it leads again,
// that is a new term.
func TestTheContextOfALeaderOnlyTaskEndsWithTheTerm(t *testing.T) {
	var n notes
	tasked(t, func(app *runnel.App, worker string) {
		app.Task("lead", func(ctx context.Context) error {
			n.add("begin " + worker)
			<-ctx.Done()
			n.add("end " + worker)
			return nil
		}, onLeader)
	}, func(c *runneltest.Cluster) {
		a := c.Start("a")
		c.Wait(func() bool { return n.has("begin a") })
		b := c.Start("b")
		c.Sleep(10 * time.Second)
		a.Isolate(time.Minute)
		c.Wait(func() bool { return n.has("begin b") })
		c.Sleep(2 * time.Minute)
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
		c.Wait(func() bool { return n.count("begin a") == 2 })
		if err := a.Stop(); err != nil {
			t.Error(err)
		}
	})
	if got, want := strings.Join(n.all(), ", "), "begin a, end a, begin b, end b, begin a, end a"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// LeaderPoll and its variable say how soon a dead leader is replaced.
func TestALeaderIsReplacedAfterThreePolls(t *testing.T) {
	for _, tt := range []struct {
		name, env string
		code      time.Duration
		within    time.Duration
	}{
		{"default", "", 0, 16 * time.Second},
		{"environment", "1s", 0, 4 * time.Second},
		{"code", "30s", 2 * time.Second, 8 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("RUNNEL_LEADER_POLL", tt.env)
			var n notes
			runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
				o.LeaderPoll = tt.code
				app := runnel.New("contract", o)
				app.Task("lead", func(context.Context) error { n.add(o.WorkerName); return nil }, &runnel.TaskOptions{Leader: true})
				return app
			}, func(c *runneltest.Cluster) {
				a := c.Start("a")
				c.Wait(func() bool { return n.has("a") })
				c.Start("b")
				c.Sleep(time.Minute)
				a.Kill()
				began := time.Now()
				c.Wait(func() bool { return n.has("b") })
				if d := time.Since(began); d > tt.within || d < tt.within/4 {
					t.Errorf("replaced after %v, want up to %v", d, tt.within)
				}
			})
		})
	}
}
