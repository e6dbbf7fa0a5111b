package schedule_test

import (
	"testing"
	"time"

	"github.com/runnel-go/runnel/schedule"
)

func TestADiamondRunsOncePerTime(t *testing.T) {
	inRig(t, nil, func(r *rig, s *schedule.Scheduler) {
		s.Job("nightly", schedule.Job{
			Triggers: []schedule.Trigger{{Name: "minute", Cron: "* * * * *"}},
			Tasks: []schedule.Task{
				{Name: "a", After: []string{"trigger/minute"}, Do: r.does(nil)},
				{Name: "b", After: []string{"task/a"}, Do: r.does(nil)},
				{Name: "c", After: []string{"task/a"}, Do: r.does(nil)},
				{Name: "d", After: []string{"task/b", "task/c"}, Do: r.does(nil)},
			},
		})
	}, func(r *rig) {
		r.start("w")
		r.c.Sleep(2*time.Minute + 30*time.Second)
		first, second := r.began.Truncate(time.Minute).Add(time.Minute), r.began.Truncate(time.Minute).Add(2*time.Minute)
		var want []string
		for _, at := range []time.Time{first, second} {
			for _, task := range []string{"a", "b", "c", "d"} {
				want = append(want, task+"@"+at.UTC().Format("15:04"))
			}
		}
		r.want("runs of two minutes", want...)
	})
}
