// A durable task runs for each due time that it has to catch up with, once, also after crashes.

package runnel_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

func durably(c runnel.CatchUp) *runnel.TaskOptions {
	return &runnel.TaskOptions{Leader: true, Durable: true, CatchUp: c}
}

// clock is a time of the day, for notes.
func clock(at time.Time) string { return at.UTC().Format("15:04:05") }

// After a stop of ten periods a durable task runs once, not at all, or ten times,
// and then goes on in its row.
func TestADurableTaskCatchesUp(t *testing.T) {
	kinds := map[string]func(app *runnel.App, fn runnel.TaskFunc, o *runnel.TaskOptions){
		"Every": func(app *runnel.App, fn runnel.TaskFunc, o *runnel.TaskOptions) { app.Every("t", time.Minute, fn, o) },
		"Cron":  func(app *runnel.App, fn runnel.TaskFunc, o *runnel.TaskOptions) { app.Cron("t", "* * * * *", fn, o) },
	}
	for _, tt := range []struct {
		name    string
		catchUp runnel.CatchUp
		missed  string // due times that run at once, in minutes since the first start
	}{
		{"once", runnel.CatchUpOnce, "12"},
		{"none", runnel.CatchUpNone, ""},
		{"all", runnel.CatchUpAll, "3 4 5 6 7 8 9 10 11 12"},
	} {
		for kind, register := range kinds {
			t.Run(kind+" "+tt.name, func(t *testing.T) {
				var n notes
				tasked(t, func(app *runnel.App, worker string) {
					register(app, func(ctx context.Context) error {
						n.add(worker + " " + clock(runnel.DueTime(ctx)))
						return nil
					}, durably(tt.catchUp))
				}, func(c *runneltest.Cluster) {
					began := time.Now()
					a := c.Start("a")
					c.Sleep(2*time.Minute + 30*time.Second)
					if err := a.Stop(); err != nil {
						t.Error(err)
					}
					c.Sleep(10 * time.Minute)
					c.Start("b")
					c.Sleep(25 * time.Second)
					caught := len(n.all())
					c.Sleep(time.Minute)
					// Every begins its row when the task was first seen, which
					// is when it became the leader.
					offset := time.Duration(0)
					if kind == "Every" {
						offset = secondsOf(t, strings.TrimPrefix(n.all()[0], "a "))
					}
					var want []string
					for _, minute := range strings.Fields("a1 a2 " + prefixed("b", tt.missed) + " b13") {
						m, err := time.ParseDuration(minute[1:] + "m")
						if err != nil {
							t.Fatal(err)
						}
						want = append(want, minute[:1]+" "+clock(began.Add(m+offset)))
					}
					if got := n.all(); !slices.Equal(got, want) {
						t.Errorf("ran for\n%v, want\n%v", got, want)
					}
					if caught != len(want)-1 {
						t.Errorf("%d runs at once, want %d", caught-2, len(want)-3)
					}
				})
			})
		}
	}
}

// secondsOf are the seconds of a time of the day.
func secondsOf(t *testing.T, text string) time.Duration {
	t.Helper()
	at, err := time.Parse("15:04:05", text)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(at.Second()) * time.Second
}

func prefixed(p, words string) string {
	var out []string
	for _, w := range strings.Fields(words) {
		out = append(out, p+w)
	}
	return strings.Join(out, " ")
}

// A worker that is restarted before the first due time does not put it off.
func TestTheFirstDueTimeOfADurableTaskStays(t *testing.T) {
	t.Parallel()
	var n notes
	tasked(t, func(app *runnel.App, worker string) {
		app.Every("hourly", time.Hour, func(context.Context) error { n.add(worker); return nil }, durably(runnel.CatchUpNone))
	}, func(c *runneltest.Cluster) {
		for range 4 {
			w := c.Start("w")
			c.Sleep(14 * time.Minute)
			if err := w.Stop(); err != nil {
				t.Error(err)
			}
		}
		c.Start("last")
		c.Sleep(10 * time.Minute)
	})
	if got := n.all(); !slices.Equal(got, []string{"last"}) {
		t.Errorf("ran on %v, want once, an hour after the first start", got)
	}
}

// What becomes due while the task runs is left out, as without Durable; if each
// time counts, it is made up for.
func TestADurableTaskNeverOverlapsItself(t *testing.T) {
	for _, tt := range []struct {
		catchUp runnel.CatchUp
		want    string
	}{
		{runnel.CatchUpOnce, "1m0s 2m0s 5m0s 6m0s"},
		{runnel.CatchUpNone, "1m0s 2m0s 5m0s 6m0s"},
		{runnel.CatchUpAll, "1m0s 2m0s 4m30s 4m30s 5m0s 6m0s"},
	} {
		var n notes
		tasked(t, func(app *runnel.App, _ string) {
			began := time.Now()
			app.Cron("t", "* * * * *", func(context.Context) error {
				n.add(time.Since(began).Round(time.Second).String())
				if len(n.all()) == 2 {
					time.Sleep(150 * time.Second)
				}
				return nil
			}, durably(tt.catchUp))
		}, func(c *runneltest.Cluster) {
			c.Start("a")
			c.Sleep(6*time.Minute + 30*time.Second)
		})
		if got := strings.Join(n.all(), " "); got != tt.want {
			t.Errorf("%v: ran after %s, want %s", tt.catchUp, got, tt.want)
		}
	}
}

// However leaders die: one run at most for each due time, in their order; and if
// each time counts, none is left out but those whose worker died between its claim
// and its run.
func TestADurableTaskNeverRunsTwiceForADueTime(t *testing.T) {
	t.Parallel()
	const kills = 12
	for _, catchUp := range []runnel.CatchUp{runnel.CatchUpOnce, runnel.CatchUpNone, runnel.CatchUpAll} {
		var n notes
		rng := rand.New(rand.NewPCG(7, uint64(catchUp)))
		tasked(t, func(app *runnel.App, _ string) {
			app.Cron("t", "@every 5s", func(ctx context.Context) error { n.add(clock(runnel.DueTime(ctx))); return nil }, durably(catchUp))
		}, func(c *runneltest.Cluster) {
			c.Latency(20 * time.Millisecond)
			names := strings.Split("abcdefghijklmnopqrstuvwxyz", "")
			alive := []*runneltest.Worker{c.Start("1"), c.Start("2"), c.Start("3")}
			for i := range kills {
				c.Sleep(time.Duration(20_000+rng.IntN(20_000)) * time.Millisecond)
				victim := rng.IntN(len(alive))
				if i%3 == 0 {
					alive[victim].Isolate(time.Duration(rng.IntN(30)) * time.Second)
					continue
				}
				alive[victim].Kill()
				alive[victim] = c.Start(names[i])
			}
			c.Sleep(time.Minute)
		})
		got := n.all()
		if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Errorf("%v: due times are not in order, or come twice: %v", catchUp, got)
		}
		if len(got) < 20 {
			t.Errorf("%v: ran %d times", catchUp, len(got))
		}
		if catchUp != runnel.CatchUpAll {
			continue
		}
		first, err1 := time.Parse("15:04:05", got[0])
		last, err2 := time.Parse("15:04:05", got[len(got)-1])
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if all := int(last.Sub(first)/(5*time.Second)) + 1; len(got) < all-kills {
			t.Errorf("ran for %d of %d due times", len(got), all)
		}
	}
}

func TestDurableIsForTheLeadersSchedules(t *testing.T) {
	task := func(context.Context) error { return nil }
	app := func() *runnel.App { return runnel.New("a", nil) }
	for _, tt := range []struct {
		want string
		fn   func()
	}{
		{"Task t: Durable is of Every and Cron on the leader only", func() { app().Task("t", task, durably(0)) }},
		{"Every t: Durable is of Every and Cron on the leader only", func() { app().Every("t", time.Minute, task, &runnel.TaskOptions{Durable: true}) }},
		{"Every t: Durable: the interval must be whole milliseconds", func() { app().Every("t", time.Microsecond, task, durably(0)) }},
		{"Cron t: CatchUp is of Durable tasks", func() {
			app().Cron("t", "@daily", task, &runnel.TaskOptions{Leader: true, CatchUp: runnel.CatchUpAll})
		}},
		{"Cron t: CatchUp: unknown value 7", func() { app().Cron("t", "@daily", task, durably(7)) }},
	} {
		wantPanic(t, tt.want, tt.fn)
	}
}

// Other tasks have a due time as well, but for Task, which is due at no time.
func TestDueTime(t *testing.T) {
	var n notes
	tasked(t, func(app *runnel.App, _ string) {
		began := time.Now()
		note := func(name string) runnel.TaskFunc {
			return func(ctx context.Context) error {
				due := runnel.DueTime(ctx)
				if due.IsZero() {
					n.add(name + " never")
				} else {
					n.add(name + " " + due.Sub(began).String())
				}
				return nil
			}
		}
		app.Task("task", note("task"), nil)
		app.Every("every", 40*time.Second, note("every"), nil)
		app.Cron("cron", "* * * * *", note("cron"), nil)
	}, func(c *runneltest.Cluster) {
		c.Start("a")
		c.Sleep(65 * time.Second)
	})
	if got, want := strings.Join(n.all(), ", "), "task never, every 40s, cron 1m0s"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if !runnel.DueTime(t.Context()).IsZero() {
		t.Error("a due time where there is no task")
	}
}
