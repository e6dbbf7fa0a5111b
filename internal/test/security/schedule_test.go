package security

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/schedule"
)

// planned is an app with a scheduler, for one user.
func planned(t *testing.T, url, layout string, ran chan<- string) (*runnel.App, *schedule.Scheduler) {
	app := runnel.New("shop", &runnel.Options{RedisURL: url, KeyLayout: runnel.KeyLayout(layout), LogLevel: "error"})
	t.Cleanup(func() { app.Close() })
	s := schedule.New(app, "jobs", &schedule.Options{Partitions: 2})
	does := func(_ context.Context, r *schedule.Run) error {
		_, _ = r.Log().Write([]byte("did it\n"))
		ran <- r.Task
		if r.Task == "bad" {
			return runnel.DeadLetter(context.Canceled)
		}
		return nil
	}
	start := time.Now().Truncate(time.Hour)
	s.Job("report", schedule.Job{
		Triggers: []schedule.Trigger{{Name: "hour", Every: time.Hour, Start: start.Add(-2 * time.Hour), End: start.Add(time.Second)}},
		Tasks: []schedule.Task{
			{Name: "sum", After: []string{"trigger/hour"}, Do: does, Limit: 1},
			{Name: "bad", After: []string{"task/sum"}, Do: does},
			{Name: "alarm", OnFailure: []string{"task/bad"}, Do: does},
		},
	})
	return app, s
}

// Schedulers work with the documented rights of each role, and with no more.
func TestSchedulersNeedWhatIsDocumented(t *testing.T) {
	for layout, of := range layouts {
		t.Run(layout, func(t *testing.T) {
			server, admin := guarded(t, layout)
			for _, line := range block(t, layout+", schedule") {
				do(t, admin, line)
			}
			ran := make(chan string, 1000)
			worker, _ := planned(t, urlOf(server, "shop-worker"), of, ran)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- worker.Run(ctx) }()
			defer func() {
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}()
			if !redistest.Within(redistest.Patience, func() bool { return len(ran) >= 9 }) {
				t.Fatalf("%d of 9 runs", len(ran))
			}
			run := func(role, want string, args ...string) {
				t.Helper()
				own, _ := planned(t, urlOf(server, "shop-"+role), of, ran)
				var out, errs bytes.Buffer
				if code := cli.Main(ctx, own, args, strings.NewReader(""), &out, &errs); code != 0 || !strings.Contains(out.String(), want) {
					t.Errorf("%s %v: code %d: %s%s", role, args, code, out.String(), errs.String())
				}
			}
			for _, role := range []string{"watcher", "operator"} {
				run(role, "report", "schedule", "ls")
				run(role, "hour", "schedule", "show", "report")
				run(role, "ALARM", "schedule", "grid")
				run(role, "", "schedule", "next")
				run(role, "failed", "schedule", "runs", "report/bad", "last")
				run(role, "did it", "schedule", "logs", "report/sum", "last")
				run(role, "apply", "schedule", "ops")
				run(role, "", "status")
			}
			run("operator", "activated", "schedule", "activate", "report/sum", "last", "--yes")
			run("operator", "pause of", "pause", "jobs/report", "--wait")
			run("operator", "cleared", "schedule", "clear", "report/bad", "last", "--yes")
			run("operator", "removed", "resume", "jobs/report")
			run("operator", "cancelled", "schedule", "cancel", "report/sum", "last", "--yes")
			run("operator", "begun", "schedule", "backfill", "report", "--from=-24h", "--yes")
			run("operator", "removed", "schedule", "rm", "report", "--yes")
		})
	}
}
