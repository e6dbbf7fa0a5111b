// Runs end, fail, are attempted again, taken over, and held.

package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/schedule"
)

var begin = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// once is a trigger with one time, the begin of the clock in tests.
var once = schedule.Trigger{Name: "once", Every: time.Hour, Start: begin, End: begin.Add(time.Minute)}

var errBad = errors.New("bad")

func TestAFailedRunIsAttemptedAgainAndThenHandled(t *testing.T) {
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) {
		s.Job("j", schedule.Job{Triggers: []schedule.Trigger{once}, Tasks: []schedule.Task{
			{Name: "a", After: []string{"trigger/once"}, Retry: &runnel.Retry{Max: 3, MinBackoff: 10 * time.Second, Jitter: -1}, Do: func(_ context.Context, run *schedule.Run) error {
				r.note("a %d.%d after %v", run.Generation, run.Attempt, time.Since(r.began).Round(time.Second))
				return errBad
			}},
			{Name: "b", After: []string{"task/a"}, Do: r.does(nil)},
			{Name: "ended", After: []string{"task/a?"}, Do: r.does(nil)},
			{Name: "alarm", OnFailure: []string{"task/a"}, Do: r.does(nil)},
		}})
	}, func(r *rig) {
		r.start("w")
		r.c.Sleep(time.Minute)
		r.want("runs", "a 1.1 after 0s", "a 1.2 after 10s", "a 1.3 after 30s", "alarm@00:00", "ended@00:00")
	})
}

func TestWhatAnErrorSays(t *testing.T) {
	var calls atomic.Int64
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) {
		task := func(name string, do func() error) []schedule.Task {
			return []schedule.Task{
				{Name: name, After: []string{"trigger/once"}, Retry: &runnel.Retry{Max: 3, MinBackoff: time.Hour}, Do: func(context.Context, *schedule.Run) error { return do() }},
				{Name: name + "-ended", After: []string{"task/" + name + "?"}, Do: r.does(nil)},
				{Name: name + "-good", After: []string{"task/" + name}, Do: r.does(nil)},
				{Name: name + "-bad", OnFailure: []string{"task/" + name}, Do: r.does(nil)},
			}
		}
		s.Job("j", schedule.Job{Triggers: []schedule.Trigger{once}, Tasks: slices.Concat(
			task("dead", func() error { return runnel.DeadLetter(errBad) }),
			task("skips", func() error { return schedule.Skip("nothing new") }),
			task("panics", func() error { panic("oh") }),
			task("later", func() error {
				if calls.Add(1) == 1 {
					return runnel.RetryAfter(errBad, 2*time.Second)
				}
				return nil
			}),
		)})
	}, func(r *rig) {
		r.start("w")
		r.c.Sleep(10 * time.Second)
		r.want("runs", "dead-ended@00:00", "dead-bad@00:00", "skips-ended@00:00", "later-ended@00:00", "later-good@00:00")
		if !strings.Contains(r.told.String(), "panic: oh") {
			t.Errorf("no panic is logged: %s", r.told.String())
		}
	})
}

func TestATimeoutIsAFailure(t *testing.T) {
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) {
		s.Job("j", schedule.Job{Triggers: []schedule.Trigger{once}, Tasks: []schedule.Task{
			{Name: "a", After: []string{"trigger/once"}, Timeout: 5 * time.Second, Do: func(ctx context.Context, _ *schedule.Run) error {
				<-ctx.Done()
				r.note("a: %v after %v", context.Cause(ctx), time.Since(r.began).Round(time.Second))
				return ctx.Err()
			}},
			{Name: "alarm", OnFailure: []string{"task/a"}, Do: r.does(nil)},
		}})
	}, func(r *rig) {
		r.start("w")
		r.c.Sleep(20 * time.Second)
		r.want("runs", "a: "+schedule.ErrTimeout.Error()+" after 5s", "alarm@00:00")
	})
}

// sleeps is a task that notes its attempts, and takes a minute unless its context ends.
func sleeps(r *rig) schedule.Func {
	return func(ctx context.Context, run *schedule.Run) error {
		r.note("%s attempt %d begins", run.Task, run.Attempt)
		select {
		case <-time.After(time.Minute):
			r.note("%s attempt %d ends", run.Task, run.Attempt)
			return nil
		case <-ctx.Done():
			r.note("%s attempt %d: %v", run.Task, run.Attempt, context.Cause(ctx))
			return ctx.Err()
		}
	}
}

func TestARunOutlivesAMoveOfItsPartition(t *testing.T) {
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) {
		s.Job("j", one(once, schedule.Task{Do: sleeps(r)}))
	}, func(r *rig) {
		r.start("w1")
		r.c.Sleep(5 * time.Second)
		r.start("w2")
		r.start("w3")
		r.start("w4")
		r.c.Sleep(2 * time.Minute)
		r.want("runs", "a attempt 1 begins", "a attempt 1 ends")
	})
}

func TestARunOfADeadWorkerIsTakenOver(t *testing.T) {
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) {
		s.Job("j", schedule.Job{Triggers: []schedule.Trigger{once}, Tasks: []schedule.Task{
			{Name: "a", After: []string{"trigger/once"}, Do: sleeps(r)},
			{Name: "alarm", OnFailure: []string{"task/a"}, Do: r.does(nil)},
		}})
	}, func(r *rig) {
		for i := 1; i <= 3; i++ {
			w := r.start(fmt.Sprint("w", i))
			for {
				r.c.Sleep(time.Second)
				if slices.Contains(r.notes(), fmt.Sprintf("a attempt %d begins", i)) {
					break
				}
				if time.Since(r.began) > 5*time.Minute {
					t.Fatalf("no attempt %d", i)
				}
			}
			w.Kill()
		}
		r.start("w4")
		r.c.Sleep(time.Minute)
		if got := r.notes(); !slices.Contains(got, "alarm@00:00") || slices.Contains(got, "a attempt 4 begins") { // it has crashed
			t.Errorf("the fourth worker: %q", got)
		}
	})
}

func TestAWorkerThatStopsGivesItsRunsBack(t *testing.T) {
	inRig(t, &schedule.Options{Grace: 5 * time.Second}, func(r *rig, s *schedule.Scheduler) {
		s.Job("j", one(once, schedule.Task{Do: sleeps(r)}))
	}, func(r *rig) {
		w := r.start("w1")
		r.c.Sleep(5 * time.Second)
		r.must(w.Stop())
		r.want("the first worker", "a attempt 1 begins", "a attempt 1: "+schedule.ErrInterrupted.Error())
		r.start("w2")
		r.c.Sleep(90 * time.Second)
		r.want("the second worker", "a attempt 2 begins", "a attempt 2 ends")
	})
}

func TestALimitHoldsRuns(t *testing.T) {
	var now, most atomic.Int64
	inRig(t, &schedule.Options{Concurrency: 20}, func(r *rig, s *schedule.Scheduler) {
		trigger := schedule.Trigger{Name: "minute", Every: time.Minute, Start: begin.Add(-49 * time.Minute)}
		s.Job("j", one(trigger, schedule.Task{Limit: 2, Do: func(context.Context, *schedule.Run) error {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(100 * time.Millisecond)
			now.Add(-1)
			r.note("a")
			return nil
		}}))
	}, func(r *rig) {
		r.start("w1")
		r.start("w2")
		r.c.Sleep(20 * time.Second)
		if got := len(r.notes()); got != 50 || most.Load() != 2 {
			t.Errorf("%d runs, %d at once", got, most.Load())
		}
	})
}

func TestAPausedJobStartsNothing(t *testing.T) {
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) {
		trigger := schedule.Trigger{Name: "minute", Every: time.Minute, Start: begin.Add(30 * time.Second)}
		none := trigger
		none.Name, none.CatchUp = "none", schedule.CatchUpNone
		s.Job("j", schedule.Job{Triggers: []schedule.Trigger{trigger, none}, Tasks: []schedule.Task{
			{Name: "a", After: []string{"trigger/minute"}, Do: r.does(nil)},
			{Name: "b", After: []string{"trigger/none"}, Do: r.does(nil)}, // not what fired during a pause
		}})
	}, func(r *rig) {
		r.start("w")
		r.c.Sleep(40 * time.Second)
		r.want("before", "a@00:00", "b@00:00")
		r.done(r.s.Pause(r.c.Context(), "j", &schedule.OpOptions{By: "me", Why: "repairs"}))
		r.c.Sleep(3 * time.Minute)
		r.want("paused")
		r.done(r.s.Resume(r.c.Context(), "j", nil))
		r.c.Sleep(5 * time.Second)
		r.want("resumed", "a@00:01", "a@00:02", "a@00:03", "b@00:03")
		r.done(r.s.Pause(r.c.Context(), "j", &schedule.OpOptions{For: 90 * time.Second}))
		r.c.Sleep(80 * time.Second)
		r.want("paused for a time")
		r.c.Sleep(20 * time.Second)
		r.want("its end", "a@00:04", "b@00:04")
	})
}

func TestWhatPeopleRunAgain(t *testing.T) {
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) {
		s.Job("j", schedule.Job{Triggers: []schedule.Trigger{once}, Tasks: []schedule.Task{
			{Name: "a", After: []string{"trigger/once"}, Do: r.does(nil)},
			{Name: "b", After: []string{"task/a"}, Do: r.does(nil)},
			{Name: "c", After: []string{"task/a"}, Do: r.does(nil)},
			{Name: "d", After: []string{"task/b", "task/c"}, Do: r.does(nil)},
		}})
	}, func(r *rig) {
		ctx := r.c.Context()
		r.start("w")
		r.c.Sleep(5 * time.Second)
		r.want("first", "a@00:00", "b@00:00", "c@00:00", "d@00:00")
		r.done(r.s.Activate(ctx, schedule.Activation{Job: "j", Time: begin}, nil))
		r.c.Sleep(5 * time.Second)
		r.want("all again", "a@00:00", "b@00:00", "c@00:00", "d@00:00")
		r.done(r.s.Activate(ctx, schedule.Activation{Job: "j", Tasks: []string{"b"}, Time: begin}, nil))
		r.c.Sleep(5 * time.Second)
		r.want("b and what hangs on it", "b@00:00", "d@00:00")
		r.done(r.s.Activate(ctx, schedule.Activation{Job: "j", Tasks: []string{"b"}, Time: begin, Only: true}, nil))
		r.c.Sleep(5 * time.Second)
		r.want("b only", "b@00:00")
		r.done(r.s.Clear(ctx, schedule.Activation{Job: "j", Time: begin}, nil))
		r.c.Sleep(5 * time.Second)
		r.want("cleared")
		op, err := r.s.Activate(ctx, schedule.Activation{Job: "j", Tasks: []string{"x"}, Time: begin}, nil)
		r.must(err)
		if _, err = op.Wait(ctx); !errors.As(err, new(*schedule.RefusedError)) {
			t.Errorf("an unknown task: %v", err)
		}
	})
}

func TestACancelledRunCountsNoMore(t *testing.T) {
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) {
		s.Job("j", schedule.Job{Triggers: []schedule.Trigger{once}, Tasks: []schedule.Task{
			{Name: "a", After: []string{"trigger/once"}, Do: sleeps(r)},
			{Name: "b", After: []string{"task/a?"}, Do: r.does(nil)},
		}})
	}, func(r *rig) {
		r.start("w")
		r.c.Sleep(5 * time.Second)
		r.done(r.s.Cancel(r.c.Context(), "j", "a", begin, nil))
		r.c.Sleep(2 * time.Minute)
		r.want("runs", "a attempt 1 begins", "a attempt 1: "+schedule.ErrVoid.Error())
	})
}
