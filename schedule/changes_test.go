// Jobs change while they run.

package schedule_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/schedule"
)

func TestARemovedJobTakesItsPauseAlong(t *testing.T) {
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) { s.Handle("a", r.does(nil)) }, func(r *rig) {
		ctx, job := r.c.Context(), one(schedule.Trigger{Name: "minute", Every: time.Minute, Start: begin}, schedule.Task{Handler: "a"})
		r.start("w")
		r.done(r.s.Apply(ctx, "j", job, nil))
		r.done(r.s.Pause(ctx, "j", nil))
		r.done(r.s.Remove(ctx, "j", nil))
		r.notes()
		r.done(r.s.Apply(ctx, "j", job, nil))
		r.c.Sleep(150 * time.Second)
		r.want("runs of the second one", at(begin, 1, 2)...) // the first time has run
	})
}

func TestABackfillOfAPausedJobGoesOnAfterwards(t *testing.T) {
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) {
		s.Job("j", one(schedule.Trigger{Name: "minute", Every: time.Minute, Start: begin.Add(-time.Hour), End: begin, MaxCatchUp: 1}, schedule.Task{Do: r.does(nil)}))
	}, func(r *rig) {
		ctx := r.c.Context()
		r.start("w")
		r.c.Sleep(5 * time.Second)
		r.want("caught up", at(begin, -1)...)
		r.done(r.s.Pause(ctx, "j", nil))
		r.done(r.s.Backfill(ctx, schedule.Backfill{Job: "j", From: begin.Add(-30 * time.Minute), To: begin.Add(-28 * time.Minute)}, nil))
		r.c.Sleep(5 * time.Second)
		r.want("paused")
		r.done(r.s.Resume(ctx, "j", nil))
		r.c.Sleep(5 * time.Second)
		r.want("backfilled", at(begin, -30, -29)...)
	})
}

// Limits come, go, and change, with tasks that come and go.
func TestLimitsThatChange(t *testing.T) {
	var now, most atomic.Int64
	inRig(t, &schedule.Options{Concurrency: 50}, func(r *rig, s *schedule.Scheduler) {
		s.Handle("a", func(_ context.Context, run *schedule.Run) error {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(time.Second)
			r.note("a")
			return nil
		})
	}, func(r *rig) {
		ctx := r.c.Context()
		apply := func(limit int) {
			r.done(r.s.Apply(ctx, "j", one(schedule.Trigger{Name: "minute", Every: time.Minute, Start: begin.Add(-40 * time.Minute), End: begin}, schedule.Task{Handler: "a", Limit: limit}), nil))
		}
		r.start("w")
		apply(1)
		r.c.Sleep(1500 * time.Millisecond)
		apply(0) // 38 are held
		r.c.Sleep(2 * time.Second)
		if n := len(r.notes()); n != 40 {
			t.Errorf("%d of 40 runs", n)
		}
		for m := 1; m <= 20; m++ {
			r.done(r.s.Activate(ctx, schedule.Activation{Job: "j", Time: begin.Add(-time.Duration(m) * time.Minute)}, &schedule.OpOptions{ID: fmt.Sprint(m)}))
		}
		apply(2) // some run
		for m := 1; m <= 20; m++ {
			r.done(r.s.Activate(ctx, schedule.Activation{Job: "j", Time: begin.Add(-time.Duration(m) * time.Minute)}, &schedule.OpOptions{ID: fmt.Sprint("again", m)}))
		}
		r.c.Sleep(1100 * time.Millisecond)
		now.Store(0)
		most.Store(0)
		r.c.Sleep(20 * time.Second)
		if most.Load() > 2 {
			t.Errorf("%d at once", most.Load())
		}
		for n := range 4 {
			if left := r.c.Redis().HGetAll(ctx, fmt.Sprintf("__splace:shop.schedule.%d", n)).Val(); len(left) > 0 {
				t.Errorf("places are left: %v", left)
			}
		}
	})
}

func TestASourceThatGoesIsWaitedForNoMore(t *testing.T) {
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) {
		s.Handle("quick", r.does(nil))
		s.Handle("slow", sleeps(r))
	}, func(r *rig) {
		job := func(after ...string) schedule.Job {
			return schedule.Job{Triggers: []schedule.Trigger{once}, Tasks: []schedule.Task{
				{Name: "b", After: []string{"trigger/once"}, Handler: "quick"},
				{Name: "c", After: []string{"trigger/once"}, Handler: "slow"},
				{Name: "d", After: after, Handler: "quick"},
			}}
		}
		r.start("w")
		r.done(r.s.Apply(r.c.Context(), "j", job("task/b", "task/c"), nil))
		r.c.Sleep(5 * time.Second)
		r.want("first", "b@00:00", "c attempt 1 begins")
		r.done(r.s.Apply(r.c.Context(), "j", job("task/b"), nil))
		r.c.Sleep(5 * time.Second)
		r.want("what waited", "d@00:00")
	})
}

// Jobs of one program may wait for each other, whatever their names are.
func TestJobsOfCodeThatWaitForEachOther(t *testing.T) {
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) {
		soon := schedule.Trigger{Name: "soon", Every: time.Hour, Start: begin.Add(10 * time.Second), End: begin.Add(time.Minute)}
		s.Job("x", one(soon, schedule.Task{Do: r.does(nil)}))
		for _, name := range []string{"a", "y", "z"} {
			s.Job(name, schedule.Job{Tasks: []schedule.Task{{Name: name, After: []string{"x/task/a"}, Do: r.does(nil)}}})
		}
	}, func(r *rig) {
		r.start("w")
		r.c.Sleep(20 * time.Second)
		r.want("runs", "a@00:00", "a@00:00", "y@00:00", "z@00:00")
	})
}

// A partition that is paused takes no place from others, and spins no more than a paused start of runs does.
func TestPausedPartitionsHoldNoOthers(t *testing.T) {
	inRig(t, &schedule.Options{Concurrency: 1}, func(r *rig, s *schedule.Scheduler) {
		var tasks []schedule.Task
		for i := range 8 {
			tasks = append(tasks, schedule.Task{Name: fmt.Sprint("t", i), After: []string{"trigger/once"}, Do: func(context.Context, *schedule.Run) error {
				time.Sleep(time.Second)
				r.note("ended")
				return nil
			}})
		}
		s.Job("j", schedule.Job{Triggers: []schedule.Trigger{once}, Tasks: tasks})
	}, func(r *rig) {
		r.start("w")
		r.c.Sleep(1500 * time.Millisecond)
		paused := admin.PartitionScope("schedule", "facts", 1)
		r.must(admin.New(r.app).Pause(r.c.Context(), paused, nil))
		r.c.Sleep(10 * time.Second)
		ended := len(r.notes())
		r.must(admin.New(r.app).Resume(r.c.Context(), paused))
		r.c.Sleep(10 * time.Second)
		if all := ended + len(r.notes()); ended < 5 || all != 8 {
			t.Errorf("%d runs while partition 1 was paused, %d in all", ended, all)
		}
	})
}

func TestPausedStartsOfRuns(t *testing.T) {
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) {
		s.Job("j", one(schedule.Trigger{Name: "minute", Every: time.Minute, Start: begin.Add(30 * time.Second)}, schedule.Task{Do: r.does(nil)}))
	}, func(r *rig) {
		r.start("w")
		r.c.Sleep(5 * time.Second)
		runs := admin.ProcessorScope("schedule", "runs")
		r.must(admin.New(r.app).Pause(r.c.Context(), runs, nil))
		r.c.Sleep(2 * time.Minute)
		r.want("paused")
		r.must(admin.New(r.app).Resume(r.c.Context(), runs))
		r.c.Sleep(5 * time.Second)
		r.want("resumed", at(begin, 0, 1)...)
	})
}

// Of many times that are not late yet, none is left out.
func TestManyTimesThatAreNotLate(t *testing.T) {
	inRig(t, &schedule.Options{Concurrency: 100}, func(r *rig, s *schedule.Scheduler) {
		trigger := schedule.Trigger{Name: "second", Every: time.Second, Start: begin.Add(-10 * time.Minute), End: begin, CatchUp: schedule.CatchUpNone, Late: 5 * time.Minute}
		s.Job("j", one(trigger, schedule.Task{Do: r.does(nil)}))
	}, func(r *rig) {
		r.start("w")
		r.c.Sleep(20 * time.Second)
		if n := len(r.notes()); n < 298 || n > 300 {
			t.Errorf("%d runs, want about 299", n)
		}
	})
}

// Starts need not be whole milliseconds, as those by time.Now are not.
func TestAStartBetweenTwoMilliseconds(t *testing.T) {
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) {
		s.Job("j", one(schedule.Trigger{Name: "minute", Every: time.Minute, Start: begin.Add(10*time.Second + 500*time.Microsecond)}, schedule.Task{Do: r.does(nil)}))
	}, func(r *rig) {
		r.start("w")
		r.c.Sleep(130 * time.Second)
		r.want("runs", at(begin, 0, 1, 2)...)
	})
}

// A start that moves back and is still to come fires when its times come.
func TestAStartThatMovesBackAndIsToCome(t *testing.T) {
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) { s.Handle("a", r.does(nil)) }, func(r *rig) {
		apply := func(start time.Duration) {
			r.done(r.s.Apply(r.c.Context(), "j", one(schedule.Trigger{Name: "minute", Every: time.Minute, Start: begin.Add(start)}, schedule.Task{Handler: "a"}), nil))
		}
		r.start("w")
		apply(20 * time.Minute)
		apply(10 * time.Minute)
		r.c.Sleep(9 * time.Minute)
		r.want("before it comes")
		r.c.Sleep(150 * time.Second)
		r.want("two times", at(begin, 10, 11)...)
	})
}

// A worker that cannot reach Redis has ended its runs before another one takes them over.
func TestRunsOfACutOffWorkerEndBeforeOthersBegin(t *testing.T) {
	for phase := range 6 {
		var overlaps atomic.Int64
		inRig(t, nil, func(r *rig, s *schedule.Scheduler) {
			running := map[string]bool{}
			var tasks []schedule.Task
			for i := range 4 {
				tasks = append(tasks, schedule.Task{Name: fmt.Sprint("t", i), After: []string{"trigger/once"}, Do: func(ctx context.Context, run *schedule.Run) error {
					r.mu.Lock()
					if running[run.Task] {
						overlaps.Add(1)
					}
					running[run.Task] = true
					r.mu.Unlock()
					<-ctx.Done()
					r.mu.Lock()
					running[run.Task] = false
					r.mu.Unlock()
					r.note("%s.%d", run.Task, run.Attempt)
					return ctx.Err()
				}})
			}
			s.Job("j", schedule.Job{Triggers: []schedule.Trigger{once}, Tasks: tasks})
		}, func(r *rig) {
			r.c.Latency(5 * time.Millisecond)
			w := r.start("w1")
			r.c.Sleep(6 * time.Second)
			r.start("w2")
			r.c.Sleep(15*time.Second + time.Duration(phase)*800*time.Millisecond)
			w.Isolate(2 * time.Minute)
			r.c.Sleep(30 * time.Second)
			if got := r.notes(); overlaps.Load() > 0 || !slices.Contains(got, "t0.1") {
				t.Errorf("phase %d: %d runs beside themselves: %q", phase, overlaps.Load(), got)
			}
		})
	}
}

// A job waits for a task of another one, which is applied again and again: each time runs once in both.
func TestAJobThatIsReappliedLosesNoToken(t *testing.T) {
	times := tier.Large(100)
	job := func(limit int) schedule.Job {
		return schedule.Job{
			Triggers: []schedule.Trigger{{Name: "second", Every: time.Second, Start: begin.Add(5 * time.Second), End: begin.Add(time.Duration(times+5) * time.Second)}},
			Tasks:    []schedule.Task{{Name: "a", After: []string{"trigger/second"}, Handler: "does", Limit: limit}},
		}
	}
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) {
		s.Handle("does", func(_ context.Context, run *schedule.Run) error {
			r.note("%s %s", run.Task, run.Time.Format("15:04:05"))
			return nil
		})
		s.Job("a", job(0))
		s.Job("b", schedule.Job{Tasks: []schedule.Task{{Name: "b", After: []string{"a/task/a"}, Handler: "does"}}})
	}, func(r *rig) {
		r.start("w1")
		r.start("w2")
		for n := range times / 2 {
			r.done(r.s.Apply(r.c.Context(), "a", job(n%4), nil))
			r.c.Sleep(2 * time.Second)
		}
		r.c.Sleep(20 * time.Second)
		var want []string
		for n := range times {
			at := begin.Add(time.Duration(n+5) * time.Second).Format("15:04:05")
			want = append(want, "a "+at, "b "+at)
		}
		r.want("runs", want...)
	})
}

// Of two releases with different definitions the later one wins, however often workers of either start.
func TestAReplacedDefinitionDoesNotComeBack(t *testing.T) {
	opts := &schedule.Options{}
	release := 1
	inRig(t, opts, func(r *rig, s *schedule.Scheduler) {
		s.Job("j", schedule.Job{
			Description: fmt.Sprint("release ", release),
			Triggers:    []schedule.Trigger{{Name: "minute", Every: time.Minute, Start: begin}},
			Tasks:       []schedule.Task{{Name: "a", After: []string{"trigger/minute"}, Do: r.does(nil)}},
		})
	}, func(r *rig) {
		described := func() string {
			for _, text := range r.c.Redis().HGetAll(r.c.Context(), "__sjobs:shop.schedule.0").Val() {
				_, after, _ := strings.Cut(text, `"description":"`)
				found, _, _ := strings.Cut(after, `"`)
				return found
			}
			return "none"
		}
		for i, next := range []int{1, 2, 1, 2, 1} {
			release = next
			r.start(fmt.Sprint("w", i))
			r.c.Sleep(5 * time.Second)
			if got, want := described(), fmt.Sprint("release ", min(i+1, 2)); got != want {
				t.Errorf("after the start of release %d: %s, want %s", release, got, want)
			}
		}
	})
}

// A worker that joins interrupts none of the runs under way.
func TestAWorkerThatJoinsInterruptsNothing(t *testing.T) {
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) {
		job := schedule.Job{Triggers: []schedule.Trigger{{Name: "once", Every: time.Hour, Start: begin, End: begin.Add(time.Hour)}}}
		for n := range 8 {
			job.Tasks = append(job.Tasks, schedule.Task{Name: fmt.Sprint("t", n), After: []string{"trigger/once"}, Do: func(ctx context.Context, run *schedule.Run) error {
				select {
				case <-time.After(20 * time.Second):
					r.note("%s ended in attempt %d", run.Task, run.Attempt)
				case <-ctx.Done():
					r.note("%s: %v", run.Task, context.Cause(ctx))
				}
				return nil
			}})
		}
		s.Job("j", job)
	}, func(r *rig) {
		r.start("w1")
		r.c.Sleep(5 * time.Second)
		r.start("w2")
		r.c.Sleep(30 * time.Second)
		var want []string
		for n := range 8 {
			want = append(want, fmt.Sprintf("t%d ended in attempt 1", n))
		}
		r.want("runs", want...)
	})
}

// Where nothing runs there is nothing to say of a worker that was cut off.
func TestACutOffWorkerWithoutRunsEndsNone(t *testing.T) {
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) {
		s.Job("j", one(schedule.Trigger{Name: "minute", Every: time.Minute, Start: begin}, schedule.Task{Do: r.does(nil)}))
	}, func(r *rig) {
		w := r.start("w")
		r.c.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(59 * time.Second)))
		w.Isolate(8 * time.Second) // while it takes runs
		r.c.Sleep(20 * time.Second)
		r.mu.Lock()
		defer r.mu.Unlock()
		if told := r.told.String(); strings.Contains(told, "runs ended") {
			t.Error(told)
		}
	})
}

// A worker dies with more runs than one call takes over, and Redis has forgotten that it was there.
func TestManyRunsOfAForgottenWorkerAreTakenOver(t *testing.T) {
	const times = 300
	var again atomic.Int64
	inRig(t, &schedule.Options{Concurrency: 2 * times}, func(r *rig, s *schedule.Scheduler) {
		trigger := schedule.Trigger{Name: "minute", Every: time.Minute, Start: begin.Add(-times * time.Minute), End: begin}
		s.Job("j", one(trigger, schedule.Task{Do: func(ctx context.Context, run *schedule.Run) error {
			if run.Attempt == 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			again.Add(1)
			return nil
		}}))
	}, func(r *rig) {
		w := r.start("w1")
		r.c.Sleep(5 * time.Second)
		w.Kill()
		for n := range 4 {
			r.must(r.c.Redis().Del(r.c.Context(), fmt.Sprintf("__srunner:shop.schedule.%d", n)).Err())
		}
		r.start("w2")
		r.c.Sleep(2 * time.Minute)
		if n := again.Load(); n != times {
			t.Errorf("%d of %d runs were attempted again", n, times)
		}
	})
}
