// Missed times are caught up as their trigger says.

package schedule_test

import (
	"slices"
	"testing"
	"time"

	"github.com/runnel-go/runnel/schedule"
)

// one is a job of one task.
func one(trigger schedule.Trigger, task schedule.Task) schedule.Job {
	task.Name, task.After = "a", []string{"trigger/" + trigger.Name}
	return schedule.Job{Triggers: []schedule.Trigger{trigger}, Tasks: []schedule.Task{task}}
}

// at are notes of a at minutes behind a time.
func at(begin time.Time, minutes ...int) (out []string) {
	for _, m := range minutes {
		out = append(out, "a@"+begin.Add(time.Duration(m)*time.Minute).UTC().Format("15:04"))
	}
	return out
}

func TestMissedTimesAreCaughtUp(t *testing.T) {
	for _, c := range []struct {
		name  string
		of    schedule.Trigger
		order []int // minutes behind the start
	}{
		{"earliest", schedule.Trigger{}, []int{0, 1, 2, 3, 4, 5}},
		{"latest", schedule.Trigger{CatchUp: schedule.CatchUpLatest}, []int{5, 4, 3, 2, 1, 0}},
		{"at most", schedule.Trigger{MaxCatchUp: 3}, []int{3, 4, 5}},
		{"none", schedule.Trigger{CatchUp: schedule.CatchUpNone, Late: 10 * time.Second}, nil},
		{"late", schedule.Trigger{Late: 140 * time.Second}, []int{4, 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var start time.Time
			inRig(t, &schedule.Options{Concurrency: 1}, func(r *rig, s *schedule.Scheduler) {
				if start.IsZero() { // 5.5 minutes ago
					start = time.Now().Add(-330 * time.Second)
				}
				c.of.Name, c.of.Every, c.of.Start = "minute", time.Minute, start
				s.Job("j", one(c.of, schedule.Task{Do: r.does(nil)}))
			}, func(r *rig) {
				r.start("w")
				r.c.Sleep(10 * time.Second)
				if got := r.notes(); !slices.Equal(got, at(start, c.order...)) {
					t.Errorf("got %q, want %q", got, at(start, c.order...))
				}
				r.c.Sleep(time.Minute)
				r.want("the next time", at(start, 6)...)
			})
		})
	}
}

// A random order is the same for all who look, and has each time once.
func TestMissedTimesInRandomOrder(t *testing.T) {
	var orders [2][]string
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(-100*time.Minute + 30*time.Second)
	for i := range orders {
		inRig(t, &schedule.Options{Concurrency: 1}, func(r *rig, s *schedule.Scheduler) {
			s.Job("j", one(schedule.Trigger{Name: "minute", Every: time.Minute, Start: start, End: start.Add(20 * time.Minute), CatchUp: schedule.CatchUpRandom}, schedule.Task{Do: r.does(nil)}))
		}, func(r *rig) {
			r.start("w")
			r.c.Sleep(10 * time.Second)
			orders[i] = r.notes()
		})
	}
	var all []int
	for m := range 20 {
		all = append(all, m)
	}
	sorted := slices.Sorted(slices.Values(orders[0]))
	if !slices.Equal(orders[0], orders[1]) || slices.IsSorted(orders[0]) || !slices.Equal(sorted, slices.Sorted(slices.Values(at(start, all...)))) {
		t.Errorf("%q\n%q", orders[0], orders[1])
	}
}

// All workers are away for five periods, and some die: no time is missing, none is there twice.
func TestNoTimeIsMissingAfterAnAbsence(t *testing.T) {
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) {
		s.Job("j", one(schedule.Trigger{Name: "minute", Every: time.Minute, Start: start}, schedule.Task{Do: r.does(nil)}))
	}, func(r *rig) {
		w := r.start("w1")
		r.c.Sleep(150 * time.Second)
		r.must(w.Stop())
		r.c.Sleep(5 * time.Minute)
		r.start("w2").Kill()
		r.start("w3")
		r.c.Sleep(2 * time.Minute)
		want := []int{}
		for m := 0; start.Add(time.Duration(m) * time.Minute).Before(time.Now()); m++ {
			want = append(want, m)
		}
		r.want("times", at(start, want...)...)
	})
}

func TestABackfillRunsWhatHasNotRun(t *testing.T) {
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	inRig(t, &schedule.Options{Ahead: 10}, func(r *rig, s *schedule.Scheduler) {
		trigger := schedule.Trigger{Name: "minute", Every: time.Minute, Start: start.Add(-50 * time.Minute), End: start.Add(time.Second), MaxCatchUp: 5}
		s.Job("j", one(trigger, schedule.Task{Do: r.does(nil)}))
	}, func(r *rig) {
		r.start("w")
		r.c.Sleep(10 * time.Second)
		r.want("caught up", at(start, -4, -3, -2, -1, 0)...)
		fill := func(id string) {
			r.done(r.s.Backfill(r.c.Context(), schedule.Backfill{Job: "j", From: start.Add(-40 * time.Minute), To: start.Add(-2 * time.Minute)}, &schedule.OpOptions{ID: id}))
			r.c.Sleep(20 * time.Second)
		}
		fill("1")
		var want []int
		for m := -40; m < -4; m++ {
			want = append(want, m)
		}
		r.want("filled", at(start, want...)...)
		fill("1")
		fill("2")
		r.want("filled again")
	})
}

func TestAStartThatMovesBackRunsTheTimesBefore(t *testing.T) {
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	job := func(r *rig, from time.Time) schedule.Job {
		return one(schedule.Trigger{Name: "minute", Every: time.Minute, Start: from}, schedule.Task{Handler: "a"})
	}
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) { s.Handle("a", r.does(nil)) }, func(r *rig) {
		r.start("w")
		r.done(r.s.Apply(r.c.Context(), "j", job(r, start.Add(time.Minute)), nil))
		r.c.Sleep(70 * time.Second)
		r.want("first", at(start, 1)...)
		r.done(r.s.Apply(r.c.Context(), "j", job(r, start.Add(-2*time.Minute)), nil))
		r.c.Sleep(20 * time.Second)
		r.want("those before", at(start, -2, -1, 0)...)
	})
}
