// Operations that people get wrong, and servers that forget while one is under way.

package schedule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	ischedule "github.com/runnel-go/runnel/internal/schedule"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/schedule"
)

// A year that is mistyped is refused, or begins with 1970, and nothing stops.
func TestTimesBefore1970(t *testing.T) {
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) { s.Handle("a", r.does(nil)) }, func(r *rig) {
		ctx := r.c.Context()
		r.start("w")
		r.done(r.s.Apply(ctx, "j", one(schedule.Trigger{Name: "minute", Every: time.Minute, Start: begin.Add(time.Minute)}, schedule.Task{Handler: "a"}), nil))
		ledger, early := r.calls().Ledger(), time.Date(206, 1, 1, 0, 0, 0, 0, time.UTC)
		ask := func(op *ischedule.Op) error {
			n, err := ledger.Submit(ctx, op)
			r.must(err)
			op.Number = n
			return ledger.WaitOp(ctx, op)
		}
		for _, kind := range []string{ischedule.OpActivate, ischedule.OpClear} {
			if err := ask(&ischedule.Op{Kind: kind, Job: "j", Time: early}); err == nil || !strings.Contains(err.Error(), "from 1970 on") {
				t.Errorf("%s: %v", kind, err)
			}
		}
		r.must(ask(&ischedule.Op{Kind: ischedule.OpBackfill, Job: "j", From: early, To: begin}))
		r.c.Sleep(time.Until(begin.Add(3*time.Minute + 30*time.Second)))
		r.want("it goes on", "a@00:01", "a@00:02", "a@00:03")
	})
}

// A server that forgets all of a partition while an operation tells the partitions what it changes is told all again.
func TestAPartitionThatForgetsDuringAnOperation(t *testing.T) {
	tier.Slow(t)
	tier.Sequential(t)
	const trip = 40 * time.Millisecond
	for phase := range 6 {
		inRig(t, nil, func(r *rig, s *schedule.Scheduler) { s.Handle("a", r.does(nil)) }, func(r *rig) {
			ctx := r.c.Context()
			job := func(limit int) schedule.Job {
				j := schedule.Job{Triggers: []schedule.Trigger{{Name: "m", Every: time.Minute, Start: begin, CatchUp: schedule.CatchUpNone}}}
				for i := range 8 {
					j.Tasks = append(j.Tasks, schedule.Task{Name: fmt.Sprint("t", i), After: []string{"trigger/m"}, Handler: "a", Limit: limit})
				}
				return j
			}
			first := r.start("w1")
			r.done(r.s.Apply(ctx, "other", job(1), nil))
			r.done(r.s.Apply(ctx, "j", job(1), nil))
			first.Kill()
			op, err := r.s.Apply(ctx, "j", job(2), nil)
			r.must(err)
			r.c.Latency(trip)
			r.c.Start("w2")
			r.c.Wait(func() bool { return r.changed(fmt.Sprint(op.Number)) > 0 })
			r.c.Sleep(time.Duration(phase) * trip / 2)
			for _, key := range r.c.Redis().Keys(ctx, "*.2").Val() {
				r.must(r.c.Redis().Del(ctx, key).Err())
			}
			r.c.Latency(0)
			r.done(op, nil)
			r.c.Sleep(5 * time.Minute)
			tasks := map[string]int{}
			for p := range 4 {
				for field, def := range r.c.Redis().HGetAll(ctx, fmt.Sprintf("__sdef:shop.schedule.%d", p)).Val() {
					if task, is := strings.CutPrefix(field, "task:"); is {
						job, _, _ := strings.Cut(task, "/")
						tasks[fmt.Sprint(job, " ", strings.Contains(def, `"lim":2`))]++
					}
				}
			}
			if len(tasks) != 2 || tasks["j true"] != 8 || tasks["other false"] != 8 {
				t.Errorf("phase %d: partitions know %v", phase, tasks)
			}
		})
	}
}

// Of jobs of code that are wrong in several ways each goes for its own reason.
func TestAJobOfCodeWithTwoFaultsTakesNoOtherAlong(t *testing.T) {
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) {
		s.Job("a", one(schedule.Trigger{Name: "minute", Every: time.Minute, Start: begin.Add(30 * time.Second)}, schedule.Task{Do: r.does(nil)}))
		s.Job("b", schedule.Job{Tasks: []schedule.Task{
			{Name: "x", After: []string{"gone/task/g"}, Do: r.does(nil)},
			{Name: "y", After: []string{"a/task/typo"}, Do: r.does(nil)},
		}})
	}, func(r *rig) {
		r.start("w1")
		r.c.Sleep(time.Minute)
		if jobs := r.stored("sjobs"); len(jobs) != 1 || jobs["a"] == "" {
			t.Errorf("jobs %v", jobs)
		}
	})
}

// What a task needs is not removed because something else that it names is gone already.
func TestWhatATaskNeedsStays(t *testing.T) {
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) { s.Handle("a", r.does(nil)) }, func(r *rig) {
		ctx := r.c.Context()
		job := one(schedule.Trigger{Name: "minute", Every: time.Minute, Start: begin.Add(time.Minute)}, schedule.Task{Handler: "a"})
		r.start("w")
		r.done(r.s.Apply(ctx, "j", job, nil))
		r.done(r.s.Apply(ctx, "k", job, nil))
		needs := schedule.Task{Name: "b", After: []string{"j/task/a", "k/task/a"}, Need: 1, Handler: "a"}
		r.done(r.s.Apply(ctx, "b", schedule.Job{Tasks: []schedule.Task{needs}}, nil))
		r.done(r.s.Remove(ctx, "j", &schedule.OpOptions{Force: true}))
		op, err := r.s.Remove(ctx, "k", nil)
		r.must(err)
		if did, err := op.Wait(ctx); err == nil || !strings.Contains(err.Error(), "b/task/b: k/task/a is not there") {
			t.Errorf("%s, %v", did, err)
		}
	})
}
