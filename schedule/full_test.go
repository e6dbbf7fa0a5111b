// A full server: triggers wait, and runs that are ready begin and end.

package schedule_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/schedule"
)

func TestRunsGoOnWhileTheServerIsFull(t *testing.T) {
	tier.Server(t)
	server := redistest.Start(t)
	const times = 300
	var begun, ran, ticks atomic.Int64
	goOn := make(chan struct{})
	app := runnel.New("shop", &runnel.Options{RedisURL: server.URL(), LogLevel: "error"})
	defer app.Close()
	s := schedule.New(app, "schedule", &schedule.Options{Partitions: 1, Concurrency: 5})
	declareFull(s, times, goOn, &begun, &ran, &ticks)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	rdb := server.Client(t)
	redistest.Eventually(t, "all runs are ready", func() bool {
		return begun.Load() == 4 && rdb.ZCard(ctx, "__sready:shop.schedule.0").Val() >= times-4
	})
	full := func(limit string) {
		t.Helper()
		if err := rdb.ConfigSet(ctx, "maxmemory", limit).Err(); err != nil {
			t.Fatal(err)
		}
	}
	full("1mb")
	redistest.Eventually(t, "triggers are refused", func() bool {
		due, err := rdb.ZRangeWithScores(ctx, "__sheap:shop.schedule.0", 0, 0).Result()
		return err == nil && len(due) > 0 && time.Since(time.UnixMilli(int64(due[0].Score))) > 2*time.Second
	})
	before := ticks.Load()
	close(goOn)
	redistest.Eventually(t, "all runs have ended", func() bool { return ran.Load() == times })
	if n := ticks.Load(); n > before {
		t.Errorf("%d ticks on a full server", n-before)
	}
	full("0")
	redistest.Eventually(t, "triggers go on", func() bool { return ticks.Load() > before })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// declareFull declares a job with missed times, whose runs wait until goOn is closed, and a trigger each second.
func declareFull(s *schedule.Scheduler, times int, goOn <-chan struct{}, begun, ran, ticks *atomic.Int64) {
	end := time.Now().Truncate(time.Minute)
	s.Job("j", schedule.Job{
		Triggers: []schedule.Trigger{
			{Name: "missed", Every: time.Minute, Start: end.Add(-time.Duration(times) * time.Minute), End: end},
			{Name: "tick", Every: time.Second, Start: end},
		},
		Tasks: []schedule.Task{
			{Name: "waits", After: []string{"trigger/missed"}, Do: func(ctx context.Context, _ *schedule.Run) error {
				begun.Add(1)
				select {
				case <-goOn:
					ran.Add(1)
				case <-ctx.Done():
				}
				return nil
			}},
			{Name: "ticks", After: []string{"trigger/tick"}, Do: func(context.Context, *schedule.Run) error {
				ticks.Add(1)
				return nil
			}},
		},
	})
}
