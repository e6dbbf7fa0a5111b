// Runs start by their priority.

package schedule_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/runnel-go/runnel/schedule"
)

// inTurn are tasks of several priorities, of which one runs at a time; the first one makes the others wait.
func inTurn(r *rig, s *schedule.Scheduler, trigger schedule.Trigger) {
	does := func(_ context.Context, run *schedule.Run) error {
		time.Sleep(time.Second)
		r.note("%s@%s", run.Task, run.Time.Format("15:04"))
		return nil
	}
	job := schedule.Job{Triggers: []schedule.Trigger{trigger}}
	for name, priority := range map[string]schedule.Priority{"low": schedule.PriorityLow, "normal": "", "high": schedule.PriorityHigh} {
		job.Tasks = append(job.Tasks, schedule.Task{Name: name, After: []string{"task/join"}, Priority: priority, Do: does})
	}
	job.Tasks = append(job.Tasks, schedule.Task{Name: "join", After: []string{"task/begin"}},
		schedule.Task{Name: "begin", After: []string{"trigger/" + trigger.Name}, Do: func(context.Context, *schedule.Run) error { time.Sleep(time.Second); return nil }})
	s.Job("j", job)
}

func TestRunsStartByThePriorityOfTheirTask(t *testing.T) {
	inRig(t, &schedule.Options{Concurrency: 1}, func(r *rig, s *schedule.Scheduler) { inTurn(r, s, once) }, func(r *rig) {
		r.start("w")
		r.c.Sleep(10 * time.Second)
		// The first of the three may be any: the others were not ready yet when it was taken.
		order := []string{"high@00:00", "normal@00:00", "low@00:00"}
		got := r.notes()
		if len(got) != 3 || slices.Index(order, got[1]) > slices.Index(order, got[2]) {
			t.Errorf("%q", got)
		}
		for n := range 4 {
			for cell, p := range r.priorities(n) {
				want := map[string]int64{"j/task/low": 2, "j/task/normal": 1, "j/task/high": 0, "j/task/begin": 1, "j/task/join": 1}[cell]
				if p != want {
					t.Errorf("%s has the priority %d, want %d", cell, p, want)
				}
			}
		}
	})
}

// What is missed, and all that it leads to, has the lowest priority; what is activated, and all that it leads to, the highest.
func TestPrioritiesSpread(t *testing.T) {
	trigger := schedule.Trigger{Name: "minute", Every: time.Minute, Start: begin.Add(-2 * time.Minute), End: begin}
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) { inTurn(r, s, trigger) }, func(r *rig) {
		all := func(want int64) {
			t.Helper()
			r.c.Sleep(10 * time.Second)
			for n := range 4 {
				for cell, p := range r.priorities(n) {
					if p != want {
						t.Errorf("%s has the priority %d, want %d", cell, p, want)
					}
				}
			}
		}
		r.start("w")
		all(3)
		for m := 1; m <= 2; m++ {
			r.done(r.s.Activate(r.c.Context(), schedule.Activation{Job: "j", Time: begin.Add(-time.Duration(m) * time.Minute)}, nil))
		}
		all(0)
	})
}
