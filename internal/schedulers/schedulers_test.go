package schedulers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/schedulers"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/servers"
	"github.com/runnel-go/runnel/schedule"
)

func init() { extension.Known(schedulers.New(nil)) } // as the runnel binary does

// An office is an app with the scheduler jobs, and a worker of it.
type office struct {
	t   *testing.T
	url string
}

func (o *office) declare() *runnel.App {
	app := runnel.New("office", &runnel.Options{LogLevel: "error", RedisURL: o.url})
	o.t.Cleanup(func() { app.Close() })
	s := schedule.New(app, "jobs", &schedule.Options{Partitions: 3})
	does := func(_ context.Context, r *schedule.Run) error {
		_, _ = r.Log().Write([]byte("for " + r.Time.Format(time.DateOnly)))
		if r.Task == "bad" {
			return runnel.DeadLetter(errors.New("no paper"))
		}
		return nil
	}
	s.Handle("file", does)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s.Job("report", schedule.Job{
		Triggers: []schedule.Trigger{{Name: "day", Every: 24 * time.Hour, Start: start, End: start.Add(72 * time.Hour)}},
		Tasks: []schedule.Task{
			{Name: "sum", After: []string{"trigger/day"}, Do: does},
			{Name: "bad", After: []string{"task/sum"}, Do: does},
			{Name: "never", After: []string{"task/bad"}, Do: does},
		},
	})
	return app
}

func (o *office) work() {
	app := o.declare()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	o.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			o.t.Error(err)
		}
	})
}

// run runs a command without the app's code; it must end with the code and print the text.
func (o *office) run(code int, want string, args ...string) string {
	o.t.Helper()
	var out, errs bytes.Buffer
	got := cli.Main(context.Background(), nil, append(args, "--app", "office", "--redis-url", o.url), strings.NewReader(""), &out, &errs)
	if got != code || !strings.Contains(out.String()+errs.String(), want) {
		o.t.Errorf("%q: code %d, want %d and %q:\n%s%s", args, got, code, want, out.String(), errs.String())
	}
	return out.String()
}

func TestCommandsOfSchedulers(t *testing.T) {
	servers.Both(t, func(t *testing.T, addr string, _ bool) {
		o := &office{t, "redis://" + addr}
		o.run(1, "has nothing of schedule: start a worker", "schedule", "ls")
		o.work()
		redistest.Eventually(t, "all runs are done", func() bool {
			var buf, errs bytes.Buffer
			cli.Main(context.Background(), nil, []string{"schedule", "grid", "report", "--output", "json", "--app", "office", "--redis-url", o.url}, strings.NewReader(""), &buf, &errs)
			return strings.Count(buf.String(), `"failed"`) == 3
		})
		o.looks()
		o.asks()
		o.files()
	})
}

func (o *office) looks() {
	o.run(0, "2026-01-01", "schedule", "grid")
	o.run(0, "S", "schedule", "grid", "--limit", "1", "--before", "2026-01-02")
	o.run(0, "no paper", "schedule", "runs", "report/bad")
	o.run(0, "for 2026-01-03", "schedule", "logs", "report/sum", "last")
	o.run(0, "for 2026-01-02", "schedule", "logs", "report/sum", "2026-01-02", "--follow")
	o.run(1, "nothing is known of report/never at 2026-01-02", "schedule", "logs", "report/never", "2026-01-02")
	o.run(0, "trigger", "schedule", "show", "report")
	o.run(0, "apply", "schedule", "ops")
	o.run(2, "is no time: say RFC 3339", "schedule", "runs", "report/sum", "yesterday")
	o.run(1, `job report has no task "x"; it has sum, bad, never`, "schedule", "runs", "report/x")
	o.run(1, `scheduler jobs has no job "x"; it has report`, "schedule", "show", "x")
	o.run(1, `the app has no scheduler "x"; it has jobs`, "schedule", "ls", "--scheduler", "x")
	o.run(0, "for 2026-01-02", "schedule", "logs", "report/bad", "2026-01-02T00:00:00Z")
	o.run(2, "which task? say JOB/TASK: job report has sum, bad, never", "schedule", "runs", "report")
	o.run(2, "at which logical time? RFC 3339, a date", "schedule", "logs", "report/bad")
	o.run(0, "TRIGGER", "schedule", "next", "")
	o.run(1, `no job "x"; it has report`, "schedule", "next", "report", "x")
	o.run(2, "--limit 0 is not between", "schedule", "grid", "--limit", "0")
	o.run(2, "unexpected argument", "schedule", "ls", "a")
	o.run(0, "0 runs queued, 0 held, 0 wait for another attempt, 0 running", "status", "--all")
	var states []schedulers.JobState
	if err := json.Unmarshal([]byte(o.run(0, "", "schedule", "ls", "--output", "json")), &states); err != nil || len(states) != 1 || states[0].Last["success"] != 1 || states[0].Last["failed"] != 1 || states[0].Last["waiting"] != 0 {
		o.t.Errorf("%v: %+v", err, states)
	}
}

func (o *office) asks() {
	o.run(2, "say --yes", "schedule", "activate", "report/sum", "last")
	o.run(0, "activated: 3 tasks at 2026-01-03", "schedule", "activate", "report/sum", "last", "--yes")
	o.run(0, "activated: 1 tasks", "schedule", "activate", "report/never", "2026-01-02", "--only", "--yes", "--id", "one")
	o.run(0, "activated: 1 tasks", "schedule", "activate", "report/never", "2026-01-02", "--only", "--yes", "--id", "one")
	redistest.Eventually(o.t, "it ran", func() bool {
		return strings.Contains(o.run(0, "", "schedule", "runs", "report/never", "2026-01-02"), "success")
	})
	o.run(0, "1.1", "schedule", "runs", "report/never", "2026-01-02") // once
	o.run(0, "pause of processor:jobs/report", "pause", "jobs/report", "--why", "repairs", "--wait")
	o.run(0, "paused: repairs", "schedule", "ls")
	o.run(1, "block stream:jobs", "block", "jobs/report", "--as-admin")
	o.run(0, "is removed", "resume", "jobs/report")
	o.run(0, "pause of processor:jobs/runs", "pause", "jobs/runs")
	o.run(0, "OK", "check", "--max-lag", "0", "--max-age", "1h")
	o.run(0, "activated: 1 tasks", "schedule", "activate", "report/never", "2026-01-02", "--only", "--yes")
	o.run(3, "jobs: 1 run queued, above 0: have workers free places, or does a rule", "check", "--max-lag", "0")
	o.run(0, "OK", "check", "--max-lag", "1")
	o.run(0, "is removed", "resume", "jobs/runs")
	o.run(0, "begun", "schedule", "backfill", "report", "--from", "2025-12-01", "--yes")
	o.run(2, "from when on? say --from TIME", "schedule", "backfill", "report", "--yes")
	o.run(2, "no time is from", "schedule", "backfill", "report", "--from", "2026-02-01", "--to", "2026-01-01", "--yes")
	o.run(2, "which task? say JOB/TASK", "schedule", "cancel", "report", "last", "--yes")
	o.run(0, "cleared: 2 tasks", "schedule", "clear", "report/bad", "last", "--yes")
}

func (o *office) files() {
	file := filepath.Join(o.t.TempDir(), "jobs.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			o.t.Fatal(err)
		}
	}
	write("job: other\ntasks:\n  - {name: a, after: [report/task/sum], do: file}\n  - {name: b, after: [report/task/gone]}\n")
	o.run(1, "nothing is applied", "schedule", "apply", file)
	write("job: other\ntasks:\n  - {name: a, after: [report/task/sum], do: file}\n  - {name: b, after: [task/a]}\n")
	o.run(0, "job other: new", "schedule", "apply", file, "--dry-run")
	o.run(0, "new: 0 triggers, 2 tasks", "schedule", "apply", file)
	o.run(0, "job other: no change", "schedule", "apply", file, "--dry-run")
	write("job: other\ntasks:\n  - {name: a, after: [report/task/sum], do: file, limit: 3}\n")
	o.run(0, "task a: Limit was 0, is 3; task b is gone", "schedule", "apply", file, "--dry-run")
	o.run(0, "replaced", "schedule", "apply", file)
	o.run(0, "activated", "schedule", "activate", "report/sum", "2026-01-01", "--yes")
	redistest.Eventually(o.t, "the other job ran", func() bool {
		return strings.Contains(o.run(0, "", "schedule", "runs", "other/a"), "success")
	})
	o.run(1, "without job report: other/task/a: report/task/sum is not there", "schedule", "rm", "report", "--yes")
	o.run(1, `no job "other/a"`, "schedule", "rm", "other/a", "--yes")
	o.run(0, "stored (operation", "schedule", "rm", "other", "--yes", "--no-wait", "--id", "gone")
	redistest.Eventually(o.t, "the other job is removed", func() bool {
		return strings.Contains(o.run(0, "", "schedule", "ops", "gone"), "removed")
	})
	o.run(1, `no job "other"`, "schedule", "show", "other")
	o.together()
}

// together applies two files whose jobs wait for each other.
func (o *office) together() {
	dir := o.t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			o.t.Fatal(err)
		}
		return path
	}
	x := file("x.yaml", "job: x\ntasks:\n  - {name: a, after: [report/task/sum]}\n  - {name: c, after: [y/task/b]}\n")
	y := file("y.yaml", "job: y\ntasks:\n  - {name: b, after: [x/task/a]}\n")
	circle := file("circle.yaml", "job: y\ntasks:\n  - {name: b, after: [x/task/c]}\n")
	o.run(1, "y/task/b is not there: there is no job y", "schedule", "apply", x)
	o.run(1, "it waits for itself", "schedule", "apply", x, circle)
	o.run(1, "circle.yaml: job y is in "+y+", too", "schedule", "apply", x, y, circle)
	o.run(0, "job y: new", "schedule", "apply", x, y, "--dry-run")
	o.run(1, `no job "x"`, "schedule", "show", "x")
	lines := strings.Split(strings.TrimSpace(o.run(0, "job x: new: 0 triggers, 2 tasks (operation", "schedule", "apply", x, y, "--id", "both")), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[1], "job y: new: 0 triggers, 1 tasks (operation ") {
		o.t.Errorf("%q", lines)
	}
	o.run(0, "x: new: 0 triggers, 2 tasks; y: new: 0 triggers, 1 tasks", "schedule", "ops", "both")
	o.run(0, "jobs/x, y", "audit", "ls")
}
