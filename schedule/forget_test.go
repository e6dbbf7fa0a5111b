// Old times are forgotten, and do not come back.

package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/schedule"
)

func TestOldTimesAreForgotten(t *testing.T) {
	tier.Sequential(t)
	opts := &schedule.Options{Keep: 5, KeepMin: time.Second}
	inRig(t, opts, func(r *rig, s *schedule.Scheduler) {
		s.Job("j", schedule.Job{
			Triggers: []schedule.Trigger{{Name: "second", Every: time.Second, Start: begin, End: begin.Add(100 * time.Second)}},
			Tasks: []schedule.Task{
				{Name: "a", After: []string{"trigger/second"}, Do: r.does(nil)},
				{Name: "b", After: []string{"task/a"}, Do: r.does(nil)},
				{Name: "joined", After: []string{"task/a", "task/b"}},
			},
		})
	}, func(r *rig) {
		r.start("w1")
		r.c.Sleep(30 * time.Second)
		r.start("w2")
		r.c.Sleep(150 * time.Second)
		if got := len(r.notes()); got != 200 {
			t.Errorf("%d runs, want 200", got)
		}
		cells := 0
		for n := range 4 {
			cells += int(r.c.Redis().HLen(r.c.Context(), fmt.Sprintf("__scell:shop.schedule.%d", n)).Val())
		}
		if cells < 15 || cells > 40 { // in each round a few more than Keep
			t.Errorf("%d cells are left", cells)
		}
	})
}
