package stage_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/stage"
)

// Only stages that want an entity visit it, in the order of their registration, until none does.
func TestStagesRunUntilNoneWants(t *testing.T) {
	inRig(t, nil, func(r *rig, s items) {
		s.Stage("late", func(e item) bool { return e.A == 1 }, r.does(func(_ context.Context, e *item) (stage.Result, error) {
			e.A = 2
			return stage.Updated, nil
		}), nil)
		s.Stage("look", func(e item) bool { return e.A == 0 }, r.does(func(_ context.Context, e *item) (stage.Result, error) {
			e.A = 7 // forgotten
			return stage.Untouched, nil
		}), nil)
		s.Stage("early", func(e item) bool { return e.A == 0 }, r.does(func(_ context.Context, e *item) (stage.Result, error) {
			e.A = 1
			return stage.Updated, nil
		}), nil)
		s.Stage("never", func(e item) bool { return e.A == 9 }, r.does(nil), nil)
	}, func(r *rig) {
		r.start("w")
		r.put(item{ID: "a"})
		r.rests()
		r.wants("look a 1 at 0s", "early a 1 at 0s", "late a 1 at 0s")
		if e := r.get("a"); e.Value.A != 2 || e.Version != 3 {
			t.Errorf("%+v, want A 2 in version 3", e)
		}
		r.put(item{ID: "b", A: 5})
		r.rests()
		r.wants()
		if e := r.get("b"); e.Version != 1 {
			t.Errorf("touched: %+v", e)
		}
	})
}

// A deleted entity is gone with its visits, also where the Func deletes it.
func TestDeletedEntitiesLeaveNothing(t *testing.T) {
	inRig(t, nil, func(r *rig, s items) {
		s.Stage("wait", func(e item) bool { return e.A == 0 }, r.does(func(_ context.Context, e *item) (stage.Result, error) {
			return stage.Untouched.After(time.Hour), nil
		}), nil)
		s.Stage("delete", func(e item) bool { return e.B == 1 }, r.does(func(_ context.Context, e *item) (stage.Result, error) {
			return stage.Deleted, nil
		}), nil)
	}, func(r *rig) {
		r.start("w")
		r.put(item{ID: "a"}, item{ID: "b", B: 1}, item{ID: "c"})
		r.c.Wait(func() bool { return r.keys() == "visit:shop.items.wait" })
		if _, err := r.set.Get(r.c.Context(), "b"); !errors.Is(err, stage.ErrNotFound) {
			t.Errorf("b: %v", err)
		}
		n, err := r.set.Delete(r.c.Context(), "a", "b", "c")
		if n != 2 || err != nil {
			t.Errorf("deleted %d, %v", n, err)
		}
		r.rests()
	})
}

// One visit waits per stage and entity; the earliest time wins. What is put while a visit runs, runs
// after it, at its time. No visit is early.
func TestEarliestVisitWins(t *testing.T) {
	inRig(t, nil, func(r *rig, s items) {
		s.Stage("at", func(e item) bool { return e.A == 0 }, r.does(func(ctx context.Context, e *item) (stage.Result, error) {
			v, _ := stage.VisitOf(ctx)
			if now := stage.Now(ctx); v.Due.After(now) {
				r.note("early: due %v at %v", v.Due, now)
			}
			time.Sleep(5 * time.Second)
			return stage.Untouched, nil
		}), nil)
	}, func(r *rig) {
		r.start("w")
		r.put(item{ID: "a"})
		r.rests()
		ctx, now := r.c.Context(), time.Now()
		visit := func(after time.Duration) { r.must(r.set.Visit(ctx, "at", now.Add(after), "a")) }
		visit(20 * time.Second)
		visit(10 * time.Second)
		visit(30 * time.Second)
		r.c.Sleep(12 * time.Second) // it runs
		visit(25 * time.Second)
		visit(22 * time.Second)
		r.c.Sleep(10*time.Second + 500*time.Millisecond) // it runs again
		visit(1 * time.Second)
		visit(2 * time.Second)
		r.rests()
		r.wants("at a 1 at 0s", "at a 1 at 15s", "at a 1 at 27s", "at a 1 at 32s")
	})
}

// Whenever the entity is saved elsewhere during a visit, both changes are there in the end, and the
// stage has seen the last value.
func TestSavesDuringAVisitAreKept(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 500 * time.Millisecond, 1001 * time.Millisecond} {
		t.Run(fmt.Sprint(delay), func(t *testing.T) {
			inRig(t, nil, func(r *rig, s items) {
				s.Stage("copy", func(e item) bool { return e.B != e.A }, func(ctx context.Context, e *item) (stage.Result, error) {
					time.Sleep(time.Second)
					e.B = e.A
					return stage.Updated, nil
				}, nil)
			}, func(r *rig) {
				r.c.Latency(2 * time.Millisecond)
				r.start("w")
				r.put(item{ID: "a", A: 1})
				r.c.Sleep(delay)
				_, err := r.set.Update(r.c.Context(), "a", func(e *item) error {
					e.A, e.Text = 2, "by another"
					return nil
				})
				r.must(err)
				r.rests()
				if e := r.get("a").Value; e.A != 2 || e.B != 2 || e.Text != "by another" {
					t.Errorf("%+v", e)
				}
			})
		})
	}
}

// A touch that was taken while another visit ran looks at what it brought, and not at what that visit saw.
func TestATouchLooksAtTheNewestValue(t *testing.T) {
	inRig(t, nil, func(r *rig, s items) {
		s.Stage("slow", func(e item) bool { return e.A == 0 }, r.does(func(context.Context, *item) (stage.Result, error) {
			time.Sleep(time.Second)
			return stage.Untouched, nil
		}), nil)
		s.Stage("other", func(e item) bool { return e.A == 1 }, r.does(func(context.Context, *item) (stage.Result, error) {
			return stage.Untouched, nil
		}), nil)
	}, func(r *rig) {
		r.start("w")
		r.put(item{ID: "a"})
		r.c.Sleep(500 * time.Millisecond)
		r.put(item{ID: "a", A: 1})
		r.rests()
		r.wants("slow a 1 at 0s", "other a 1 at 1s")
	})
}

// A failing visit is attempted again as its Retry says, then it is dead, until the entity changes. Others
// of the entity go on, and changes of the entity do not shorten the wait.
func TestFailedVisitsWaitAndDie(t *testing.T) {
	retry := &runnel.Retry{Max: 3, MinBackoff: 10 * time.Second, Jitter: -1}
	inRig(t, &stage.Options{Retry: retry}, func(r *rig, s items) {
		s.Stage("fails", func(e item) bool { return e.A > 0 }, r.does(func(_ context.Context, e *item) (stage.Result, error) {
			if e.A == 9 {
				e.A = 0
				return stage.Updated, nil
			}
			return stage.Updated, errors.New("not now")
		}), nil)
		s.Stage("copies", func(e item) bool { return e.B != e.A }, func(_ context.Context, e *item) (stage.Result, error) {
			e.B = e.A
			return stage.Updated, nil
		}, nil)
	}, func(r *rig) {
		r.start("w")
		r.put(item{ID: "a", A: 1})
		r.c.Sleep(time.Second)
		for range 5 {
			_, err := r.set.Update(r.c.Context(), "a", func(e *item) error {
				e.A++
				return nil
			})
			r.must(err)
			r.c.Sleep(time.Second)
		}
		if e := r.get("a").Value; e.B != e.A {
			t.Errorf("another stage waits: %+v", e)
		}
		r.c.Sleep(time.Minute)
		r.wants("fails a 1 at 0s", "fails a 2 at 10s", "fails a 3 at 30s")
		if got := r.keys(); got != "visitdead:shop.items.fails visitfail:shop.items" {
			t.Errorf("there is %s", got)
		}
		r.must(r.set.Touch(r.c.Context(), "a"))
		r.c.Sleep(time.Second)
		r.wants() // dead at this version
		r.put(item{ID: "a", A: 9, B: 9})
		r.rests()
		r.wants("fails a 1 at 1m7s")
	})
}

// What an error says of itself is done: another wait, dead at once, given up. A panic and the end of the
// goroutine are errors.
func TestErrorsSayWhatBecomesOfAVisit(t *testing.T) {
	inRig(t, &stage.Options{Retry: &runnel.Retry{Max: 2, MinBackoff: time.Second, Jitter: -1}}, func(r *rig, s items) {
		s.Stage("say", func(e item) bool { return e.A == 0 }, r.does(func(_ context.Context, e *item) (stage.Result, error) {
			bad := errors.New("bad")
			switch e.ID {
			case "after":
				return stage.Untouched, runnel.RetryAfter(bad, 7*time.Second)
			case "dead":
				return stage.Untouched, runnel.DeadLetter(bad)
			case "drop":
				return stage.Untouched, runnel.Drop(bad)
			case "panics":
				panic(bad)
			case "exits":
				runtime.Goexit()
			case "id":
				e.ID = "another"
			}
			return stage.Updated, nil
		}), nil)
	}, func(r *rig) {
		r.start("w")
		for _, want := range [][]string{
			{"after", "say after 1 at 0s", "say after 2 at 7s"},
			{"dead", "say dead 1 at 20s"},
			{"drop", "say drop 1 at 40s"},
			{"panics", "say panics 1 at 1m0s", "say panics 2 at 1m1s"},
			{"id", "say id 1 at 1m20s", "say id 2 at 1m21s"},
			{"exits", "say exits 1 at 1m40s", "say exits 2 at 1m41s"},
		} {
			r.put(item{ID: want[0]})
			r.c.Sleep(20 * time.Second)
			r.wants(want[1:]...)
		}
		failed := r.c.Redis()
		for _, want := range []string{"the ID of the value is", "panic", "bad", "runtime.Goexit"} {
			found := false
			for n := range 3 {
				for _, text := range failed.HGetAll(r.c.Context(), fmt.Sprintf("__visitfail:shop.items.%d", n)).Val() {
					found = found || strings.Contains(text, want)
				}
			}
			if !found {
				t.Errorf("no failure says %q", want)
			}
		}
	})
}

// Stages that undo each other are slowed down, others are not. A save from outside is answered at once.
func TestStagesThatUndoEachOtherAreSlowedDown(t *testing.T) {
	tier.Sequential(t)
	var calls atomic.Int64
	inRig(t, nil, func(r *rig, s items) {
		s.Stage("up", func(e item) bool { return e.A == 0 }, func(_ context.Context, e *item) (stage.Result, error) {
			if calls.Add(1) > 5000 {
				return stage.Untouched, nil
			}
			e.A = 1
			return stage.Updated, nil
		}, nil)
		s.Stage("down", func(e item) bool { return e.A == 1 }, func(_ context.Context, e *item) (stage.Result, error) {
			calls.Add(1)
			e.A = 0
			return stage.Updated, nil
		}, nil)
		s.Stage("often", func(e item) bool { return e.A == 5 }, func(_ context.Context, e *item) (stage.Result, error) {
			e.B++
			return stage.Updated.After(time.Second), nil
		}, nil)
	}, func(r *rig) {
		r.start("w")
		r.put(item{ID: "loops"}, item{ID: "often", A: 5})
		r.c.Sleep(4 * time.Minute)
		if n := calls.Load(); n < 100 || n > 4*130 {
			t.Errorf("%d calls in four minutes", n)
		}
		if !strings.Contains(r.keys(), "visitfail:") {
			t.Errorf("nothing tells of it: %s", r.keys())
		}
		if e := r.get("often").Value; e.B < 230 {
			t.Errorf("a visit each second: %d in four minutes", e.B)
		}
		r.put(item{ID: "loops", A: 3}, item{ID: "often", A: 3})
		r.c.Sleep(3 * time.Second)
		if got := r.keys(); got != "" {
			t.Errorf("there is %s", got)
		}
	})
}

// A change puts no second visit of a stage whose first one is taken already: if that fails, it waits.
func TestAChangeDoesNotShortenTheWaitOfWhatFailsNext(t *testing.T) {
	inRig(t, &stage.Options{Retry: &runnel.Retry{Max: 3, MinBackoff: 10 * time.Second, Jitter: -1}}, func(r *rig, s items) {
		s.Stage("change", func(e item) bool { return e.A == 0 }, func(_ context.Context, e *item) (stage.Result, error) {
			time.Sleep(time.Second) // the other one is taken meanwhile
			e.A = 1
			return stage.Updated, nil
		}, nil)
		s.Stage("fails", func(e item) bool { return e.B == 0 }, r.does(func(context.Context, *item) (stage.Result, error) {
			return stage.Untouched, errors.New("not now")
		}), nil)
	}, func(r *rig) {
		r.start("w")
		r.put(item{ID: "a"})
		r.c.Sleep(2 * time.Minute)
		r.wants("fails a 1 at 1s", "fails a 2 at 11s", "fails a 3 at 31s")
		r.must(r.set.Visit(r.c.Context(), "fails", time.Now(), "a")) // by hand, though it is dead
		r.c.Sleep(time.Second)
		r.wants("fails a 1 at 2m0s")
		if got := r.keys(); got != "visit:shop.items.fails visitfail:shop.items" {
			t.Errorf("there is %s", got)
		}
	})
}

// A when that panics fails the visits of its own stage, and holds up no other one.
func TestAWhenThatPanicsFailsItsStageAlone(t *testing.T) {
	inRig(t, &stage.Options{Retry: &runnel.Retry{Max: 2, MinBackoff: time.Second, Jitter: -1}}, func(r *rig, s items) {
		s.Stage("panics", func(e item) bool { panic("no such place") }, r.does(nil), nil)
		copies(r, s, "copy", 0, nil)
	}, func(r *rig) {
		r.start("w")
		r.put(item{ID: "a", A: 1})
		r.c.Sleep(10 * time.Second)
		if e := r.get("a").Value; e.B != 1 {
			t.Errorf("held up: %+v", e)
		}
		if got := r.keys(); got != "visitdead:shop.items.panics visitfail:shop.items" {
			t.Errorf("there is %s", got)
		}
	})
}
