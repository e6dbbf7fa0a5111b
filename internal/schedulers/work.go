package schedulers

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/jobs"
	"github.com/runnel-go/runnel/internal/schedule"
)

// defaultName is the name of a scheduler without code.
const defaultName = "schedule"

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

func runLogs(ctx context.Context, env *extension.Env) error {
	s, j, task, err := jobOf(ctx, env, 2)
	if err != nil {
		return err
	}
	if _, err := taskOf(j, task); err != nil {
		return err
	}
	if argOf(env, 1) == "" {
		return extension.Usagef("of which logical time? %s", timeHelp)
	}
	at, err := s.timeOf(ctx, j.Def.Name, task, argOf(env, 1))
	if err != nil {
		return err
	}
	place := schedule.Place{Task: jobs.Source{Job: j.Def.Name, Name: task}.String(), Time: at.UnixMilli()}
	n, behind, all := s.partition(place.Task), "", []schedule.Line{}
	for follow := true; follow; {
		// First whether it is over: what it has written is there then.
		over, there, err := s.over(ctx, n, place)
		if err != nil {
			return err
		}
		if !there {
			return fmt.Errorf("nothing is known of %s/%s at %s", j.Def.Name, task, show(at))
		}
		lines, err := s.View().Lines(ctx, n, place, behind)
		if err != nil {
			return err
		}
		var some []schedule.Line
		for _, l := range lines {
			behind = l.ID
			if want := env.Flags.String("attempt"); want == "" || want == l.Attempt {
				some = append(some, l)
			}
		}
		if follow = env.Flags.Bool("follow") && !over; !env.Flags.Bool("follow") {
			all = append(all, some...)
			break
		}
		if len(some) > 0 {
			if err := printLines(env, some); err != nil {
				return err
			}
		}
		if follow {
			select {
			case <-time.After(logsPoll):
			case <-ctx.Done():
				return nil
			}
		}
	}
	if env.Flags.Bool("follow") {
		return nil
	}
	return printLines(env, all)
}

func printLines(env *extension.Env, lines []schedule.Line) error {
	return env.Print(lines, func(t extension.Table) {
		for _, l := range lines {
			t.Linef("%s %s %s: %s", l.At.Format("15:04:05.000"), l.Attempt, l.From, l.Text)
		}
	})
}

// over reports whether a run has ended, and whether there is one.
func (s *scheduler) over(ctx context.Context, n int, p schedule.Place) (over, there bool, err error) {
	found, err := s.View().Look(ctx, n, []string{p.Task}, p.Time+1, 1)
	if err != nil || len(found[p.Task]) == 0 || found[p.Task][0].Time != p.Time {
		return false, false, err
	}
	switch found[p.Task][0].State {
	case "waiting", "held", "queued", "running", "retry":
		return false, true, nil
	}
	return true, true, nil
}
