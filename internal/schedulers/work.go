package schedulers

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/schedule"
)

// defaultName is the name of a scheduler without code.
const defaultName = "schedule"

func workCommand() extension.Command {
	return extension.Command{
		Call: "worker", Usage: "run the jobs of an app that has no code: their tasks are commands", Work: work,
		Flags: []extension.Flag{
			{Name: flagScheduler, Usage: "`NAME` of the scheduler", Default: defaultName},
			{Name: "allow-exec", Usage: "run commands: who may store jobs can run any command as this user", Default: false},
			{Name: "concurrency", Usage: "at most `N` runs at once", Default: 8},
		},
		Examples: []string{"PROG schedule worker --allow-exec"},
	}
}

// work adds a scheduler to an app without code.
func work(app any, flags extension.Flags) (says string, err error) {
	n, exec := flags.Int("concurrency"), flags.Bool("allow-exec")
	if n < 1 {
		return "", extension.Usagef("--concurrency %d is not positive", n)
	}
	says = "tasks that are commands are left to other workers: this one has no --allow-exec"
	if exec {
		says = "commands run as this user"
	}
	return says, Declare(app, cmp.Or(flags.String(flagScheduler), defaultName), n, exec)
}

// logsPoll is how often --follow looks for lines.
const logsPoll = 200 * time.Millisecond

// lines returns what the task has written at its time, behind a line or "".
func (o *subject) lines(ctx context.Context, behind string) ([]schedule.Line, error) {
	p := schedule.Place{Task: o.source(o.part), Time: o.at.UnixMilli()}
	return o.View().Lines(ctx, o.partition(p.Task), p, behind)
}

func runLogs(ctx context.Context, r *request) error {
	follow, attempt, behind := r.Flags.Bool("follow"), r.Flags.String("attempt"), ""
	for {
		c, err := r.run(ctx) // before its lines: if it is over, they are all there
		if err != nil {
			return err
		}
		lines, err := r.lines(ctx, behind)
		if err != nil {
			return err
		}
		if len(lines) > 0 {
			behind = lines[len(lines)-1].ID
		}
		lines = slices.DeleteFunc(lines, func(l schedule.Line) bool { return attempt != "" && attempt != l.Attempt })
		if len(lines) > 0 || !follow {
			err = r.Print(lines, func(t extension.Table) {
				for _, l := range lines {
					t.Linef("%s %s %s: %s", l.At.Format("15:04:05.000"), l.Attempt, l.From, l.Text)
				}
			})
		}
		if err != nil || !follow || c.over() {
			return err
		}
		select {
		case <-time.After(logsPoll):
		case <-ctx.Done():
			return nil
		}
	}
}
