// Jobs that are applied together.

package schedule_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/jobs"
	ischedule "github.com/runnel-go/runnel/internal/schedule"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/schedule"
)

// release declares two jobs that wait for each other: of one chain of tasks, each is in the other job than the one before.
func release(r *rig, s *schedule.Scheduler, n, tasks int) {
	var both [2]schedule.Job
	both[0].Triggers = []schedule.Trigger{{Name: "minute", Every: time.Minute, Start: begin, CatchUp: schedule.CatchUpNone}}
	for i := range tasks {
		after := "trigger/minute"
		if i > 0 {
			after = fmt.Sprintf("%c/task/t%d", 'a'+(i-1)%2, i-1)
		}
		both[i%2].Tasks = append(both[i%2].Tasks, schedule.Task{Name: fmt.Sprint("t", i), After: []string{after}, Do: r.does(nil)})
	}
	for i, job := range both {
		job.Description = fmt.Sprint("release ", n)
		s.Job(string(rune('a'+i)), job)
	}
}

// stored are the jobs of a scheduler as Redis has them, or its operations.
func (r *rig) stored(kind string) map[string]string {
	return r.c.Redis().HGetAll(r.c.Context(), "__"+kind+":shop.schedule.0").Val()
}

// changed is how many partitions an operation has changed.
func (r *rig) changed(operation string) (n int) {
	for p := range 16 {
		if r.c.Redis().HGet(r.c.Context(), fmt.Sprintf("__sdef:shop.schedule.%d", p), "rev").Val() == operation {
			n++
		}
	}
	return n
}

// Wherever a worker dies that replaces two jobs which wait for each other, the next one goes on with the same operation.
func TestAnInterruptedApplyOfSeveralJobsIsFinished(t *testing.T) {
	tier.Slow(t)
	tier.Sequential(t)
	const trip = 40 * time.Millisecond
	died := map[string]bool{}
	for phase := 0; phase < 100; phase++ {
		over, now := false, 1
		inRig(t, nil, func(r *rig, s *schedule.Scheduler) { release(r, s, now, 4+now) }, func(r *rig) {
			first := r.start("w1")
			r.c.Wait(func() bool { return strings.Contains(r.stored("sops")["1"], `"done"`) })
			r.done(r.s.Pause(r.c.Context(), "b", nil))
			first.Kill()
			now = 2
			r.c.Latency(trip)
			second := r.c.Start("w2")
			r.c.Wait(func() bool { return r.stored("sops")["3"] != "" })
			if phase > 0 {
				r.c.Wait(func() bool { return r.changed("3") > 0 })
			}
			r.c.Sleep(time.Duration(phase) * trip / 2)
			second.Kill()
			r.c.Latency(0)
			over = strings.Contains(r.stored("sops")["3"], `"done"`)
			jobs := r.stored("sjobs")
			died[fmt.Sprint(r.changed("3") > 0, strings.Count(jobs["a"]+jobs["b"], "release 2"), over)] = true

			r.start("w3")
			r.c.Wait(func() bool { return strings.Contains(r.stored("sops")["3"], `"done"`) })
			ops, jobs := r.stored("sops"), r.stored("sjobs")
			if ops["seq"] != "3" || !strings.Contains(ops["3"], `a: replaced: 1 triggers, 3 tasks\nb: replaced: 0 triggers, 3 tasks`) {
				t.Errorf("phase %d: operations %v", phase, ops)
			}
			for name, text := range jobs {
				if len(jobs) != 2 || !strings.Contains(text, "release 2") || strings.Contains(text, `"pause"`) != (name == "b") {
					t.Errorf("phase %d: job %s: %s", phase, name, text)
				}
			}
			r.done(r.s.Resume(r.c.Context(), "b", nil))
			r.c.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(55 * time.Second)))
			r.notes()
			r.c.Sleep(20 * time.Second)
			at, want := time.Now().Truncate(time.Minute).Format("15:04"), []string{}
			for i := range 6 {
				want = append(want, fmt.Sprintf("t%d@%s", i, at))
			}
			r.want(fmt.Sprint("phase ", phase), want...)
		})
		if over || t.Failed() {
			break
		}
	}
	if !died["false 0 false"] || !died["true 0 false"] || !died["true 2 true"] {
		t.Errorf("workers died at %v, want some before it began, some in the middle, one at its end", died)
	}
}

// Of jobs that people apply together none is stored if one is refused, and no partition knows any.
func TestOfARefusedSetNothingIsApplied(t *testing.T) {
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) {}, func(r *rig) {
		r.start("w1")
		right := &jobs.Job{Name: "a", Triggers: []jobs.Trigger{{Name: "t", Cron: "* * * * *"}}, Tasks: []jobs.Task{{Name: "a", After: []string{"trigger/t"}, Handler: "a"}}}
		wrong := &jobs.Job{Name: "b", Tasks: []jobs.Task{{Name: "b", After: []string{"a/task/a", "c/task/gone"}, Handler: "b"}}}
		op, err := ischedule.ApplyOp(right, wrong)
		r.must(err)
		ledger := r.calls().Ledger()
		n, err := ledger.Submit(r.c.Context(), op)
		r.must(err)
		if err := ledger.WaitOp(r.c.Context(), &ischedule.Op{Number: n}); err == nil || !strings.Contains(err.Error(), "c/task/gone is not there") {
			t.Error(err)
		}
		if jobs := r.stored("sjobs"); len(jobs) > 0 {
			t.Errorf("jobs %v", jobs)
		}
		for n := range 4 {
			for field, text := range r.c.Redis().HGetAll(r.c.Context(), fmt.Sprintf("__sdef:shop.schedule.%d", n)).Val() {
				if strings.Contains(field, "/") {
					t.Errorf("partition %d knows %s: %s", n, field, text)
				}
			}
		}
	})
}

// Of the jobs of a program those come that can: what others wait for may come later, from a file. With the next worker the others come, too.
func TestOneWrongJobOfCodeKeepsNoOtherBack(t *testing.T) {
	source := "c/task/gone"
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) {
		trigger := schedule.Trigger{Name: "minute", Every: time.Minute, Start: begin.Add(30 * time.Second)}
		s.Job("a", one(trigger, schedule.Task{Do: r.does(nil)}))
		s.Job("b", schedule.Job{Tasks: []schedule.Task{{Name: "b", After: []string{source}, Do: r.does(nil)}}})
		s.Job("d", schedule.Job{Tasks: []schedule.Task{{Name: "d", After: []string{"b/task/b"}, Do: r.does(nil)}}})
	}, func(r *rig) {
		r.start("w1")
		r.c.Sleep(time.Minute)
		if op := r.stored("sops")["1"]; !strings.Contains(op, "c/task/gone is not there") || !strings.Contains(op, "there is no job b") {
			t.Error(op)
		}
		if jobs := r.stored("sjobs"); len(jobs) != 1 || strings.Contains(jobs["a"], `"begun"`) {
			t.Errorf("jobs %v", jobs)
		}
		r.want("runs of what is right", "a@00:00")
		source = "a/task/a"
		r.start("w2")
		r.c.Sleep(time.Minute)
		if jobs := r.stored("sjobs"); len(jobs) != 3 {
			t.Errorf("jobs %v", jobs)
		}
		r.c.Sleep(time.Minute)
		if got := r.notes(); !slices.Contains(got, "b@00:02") || !slices.Contains(got, "d@00:02") {
			t.Errorf("runs once all is right: %q", got)
		}
	})
}

// A job of code that no longer has a task for which a job of a file waits is refused, and so is one that closes a circle through such jobs;
// its other jobs come.
func TestAJobOfCodeThatWouldHurtAJobOfAFileIsRefusedAlone(t *testing.T) {
	for name, tasks := range map[string][]schedule.Task{
		"a task is gone": {{Name: "y", After: []string{"trigger/minute"}, Handler: "a"}},
		"a circle":       {{Name: "x", After: []string{"trigger/minute", "f/task/f"}, Handler: "a"}},
	} {
		release := 1
		inRig(t, nil, func(r *rig, s *schedule.Scheduler) {
			s.Handle("a", r.does(nil))
			minute := schedule.Trigger{Name: "minute", Every: time.Minute, Start: begin}
			if release == 1 {
				tasks := []schedule.Task{{Name: "x", After: []string{"trigger/minute"}, Handler: "a"}}
				s.Job("z", schedule.Job{Triggers: []schedule.Trigger{minute}, Tasks: tasks})
				return
			}
			s.Job("z", schedule.Job{Triggers: []schedule.Trigger{minute}, Tasks: tasks})
			s.Job("new", one(minute, schedule.Task{Handler: "a"}))
		}, func(r *rig) {
			first := r.start("w1")
			r.c.Sleep(10 * time.Second)
			for _, of := range [][2]string{{"g", "z/task/x"}, {"f", "g/task/g"}} {
				job := schedule.Job{Tasks: []schedule.Task{{Name: of[0], After: []string{of[1]}, Handler: "a"}}}
				r.done(r.s.Apply(r.c.Context(), of[0], job, nil))
			}
			first.Kill()
			release = 2
			r.start("w2")
			r.c.Sleep(time.Minute)
			stored := r.stored("sjobs")
			if !strings.Contains(stored["z"], `"name":"x","after":["trigger/minute"]`) || stored["new"] == "" {
				t.Errorf("%s: z is %q, new is %q", name, stored["z"], stored["new"])
			}
			if op := r.stored("sops")["4"]; strings.Contains(op, `"defs"`) || !strings.Contains(op, `"refused":true`) {
				t.Errorf("%s: %s", name, op)
			}
		})
	}
}

// What waits for a job that was removed by force is wrong from then on, and keeps no other job back.
func TestAJobRemovedByForceKeepsNoOtherBack(t *testing.T) {
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) { s.Handle("a", r.does(nil)) }, func(r *rig) {
		ctx, job := r.c.Context(), one(schedule.Trigger{Name: "minute", Every: time.Minute, Start: begin.Add(time.Minute)}, schedule.Task{Handler: "a"})
		waits := schedule.Job{Tasks: []schedule.Task{{Name: "b", After: []string{"j/task/a"}, Handler: "a"}}}
		r.start("w")
		r.done(r.s.Apply(ctx, "j", job, nil))
		r.done(r.s.Apply(ctx, "waits", waits, nil))
		r.done(r.s.Remove(ctx, "j", &schedule.OpOptions{Force: true}))
		r.done(r.s.Apply(ctx, "other", job, nil))
		op, err := r.s.Apply(ctx, "waits", waits, nil)
		r.must(err)
		if outcome, err := op.Wait(ctx); err == nil {
			t.Errorf("what waits for a job that is gone is applied anew: %s", outcome)
		}
		r.c.Sleep(90 * time.Second)
		r.want("runs", "a@00:01")
	})
}

// A run whose operation is under way does what that one says: partitions know a job before it is stored.
func TestARunOfAnOperationUnderWay(t *testing.T) {
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) { s.Handle("a", r.does(nil)) }, func(r *rig) {
		r.start("w1").Kill()
		def := &jobs.Job{Name: "j", Triggers: []jobs.Trigger{{Name: "minute", Cron: "* * * * *"}}, Tasks: []jobs.Task{{Name: "a", After: []string{"trigger/minute"}, Handler: "a"}}}
		op, err := ischedule.ApplyOp(def)
		r.must(err)
		calls, ctx := r.calls(), r.c.Context()
		n, err := calls.Ledger().Submit(ctx, op)
		r.must(err)
		r.must(r.c.Redis().ZRem(ctx, "__sheap:shop.schedule.0", fmt.Sprintf("op:%016d", n)).Err()) // its owner is not heard of any more
		compile := func(all map[string]*ischedule.Job) []*ischedule.Definition {
			return ischedule.Compile(all, 4, func(source string) int { return runnel.XXHash.Func(source, 4) }, time.Now().UnixMilli())
		}
		r.must(calls.Redefine(ctx, n, compile(nil), compile(map[string]*ischedule.Job{"j": {Rev: n, Def: def}})))
		r.start("w2")
		r.c.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(61 * time.Second)))
		r.want("under way", "a@"+time.Now().Truncate(time.Minute).Format("15:04"))
	})
}
