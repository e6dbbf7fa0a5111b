// One master of a cluster forgets everything, and the others do not.

package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/runnel-go/runnel/schedule"
)

// lose deletes all that is stored of a partition.
func (r *rig) lose(n int) {
	r.Helper()
	ctx := r.c.Context()
	keys, err := r.c.Redis().Keys(ctx, fmt.Sprintf("*shop.schedule.%d*", n)).Result()
	r.must(err)
	if len(keys) < 3 {
		r.Fatalf("partition %d has only %q", n, keys)
	}
	r.must(r.c.Redis().Del(ctx, keys...).Err())
}

// Each partition forgets in turn, and each time all tasks of later times run, once; pauses stay.
func TestAPartitionThatForgotIsToldAgain(t *testing.T) {
	each := func(name string, r *rig) schedule.Job {
		return schedule.Job{
			Triggers: []schedule.Trigger{{Name: "minute", Every: time.Minute, Start: begin, CatchUp: schedule.CatchUpNone}},
			Tasks: []schedule.Task{
				{Name: name + "1", After: []string{"trigger/minute"}, Do: r.does(nil)},
				{Name: name + "2", After: []string{"task/" + name + "1"}, Do: r.does(nil)},
			},
		}
	}
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) {
		s.Job("a", each("a", r))
		s.Job("b", each("b", r))
	}, func(r *rig) {
		r.start("w1")
		r.start("w2")
		r.c.Sleep(time.Second)
		for range 4 { // the numbers of operations grow
			r.done(r.s.Pause(r.c.Context(), "b", nil))
			r.done(r.s.Resume(r.c.Context(), "b", nil))
		}
		r.done(r.s.Pause(r.c.Context(), "b", nil))
		for _, n := range []int{1, 0, 2, 3, 2} {
			r.c.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(65 * time.Second)))
			r.lose(n)
			r.c.Sleep(49 * time.Second) // the lease of who owned it is over
			r.notes()
			r.c.Sleep(10 * time.Second)
			at := time.Now().Truncate(time.Minute).Format("15:04")
			want := []string{"a1@" + at, "a2@" + at}
			if n == 0 { // with the pause
				want = append(want, "b1@"+at, "b2@"+at)
			}
			r.want(fmt.Sprint("after the loss of partition ", n), want...)
			if n == 0 {
				r.done(r.s.Pause(r.c.Context(), "b", nil))
			}
		}
		r.done(r.s.Resume(r.c.Context(), "b", nil))
		r.c.Sleep(5 * time.Second)
		r.notes()
		r.c.Sleep(time.Minute)
		at := time.Now().Truncate(time.Minute).Format("15:04")
		r.want("after the pause", "a1@"+at, "a2@"+at, "b1@"+at, "b2@"+at)
	})
}
