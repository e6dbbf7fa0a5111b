package schedulers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/jobs"
	"github.com/runnel-go/runnel/internal/schedule"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/words"
)

// do asks for an operation, waits until a worker has done it, and returns what that did; with an error what is known of it.
func (s *scheduler) do(ctx context.Context, op *schedule.Op) (result string, err error) {
	if op.Number, err = s.Ledger().Submit(ctx, op); err == nil {
		err = s.Ledger().WaitOp(ctx, op)
	}
	return did(op), err
}

// did says what an operation did, in a line for each job that was applied.
func did(op *schedule.Op) string {
	text, number := op.Job+": "+cmp.Or(op.Outcome, "stored"), fmt.Sprintf(" (operation %d)", op.Number)
	if op.Kind == schedule.OpApply && op.Outcome != "" {
		text = op.Outcome
	}
	return "job " + strings.ReplaceAll(text, "\n", number+"\njob ") + number
}

// ask does an operation, or with --no-wait has it stored. With an answer that is an error it does nothing and returns that.
func (r *request) ask(ctx context.Context, op *schedule.Op, answer error) error {
	if answer != nil {
		return answer
	}
	op.ID, op.By, op.Why = r.Flags.String("id"), r.Who, r.Flags.String("why")
	_, err := r.Audited(ctx, "schedule "+op.Kind, path.Join(r.name, op.Job, r.part), func(ctx context.Context) (_ string, err error) {
		op.Number, err = r.Ledger().Submit(ctx, op)
		return did(op), err
	})
	if err == nil && !r.Flags.Bool("no-wait") {
		err = r.Ledger().WaitOp(ctx, op)
	}
	if err != nil {
		return fmt.Errorf("%s of job %s: %w", op.Kind, op.Job, err)
	}
	op.Defs = nil // who applies them has them
	return r.Print([]*schedule.Op{op}, func(t extension.Table) {
		for line := range strings.SplitSeq(did(op), "\n") {
			t.Linef("%s", line)
		}
	})
}

func runApply(ctx context.Context, r *request) error {
	var defs []*jobs.Job
	var wrong []error
	changes, all, fileOf := []Change{}, map[string]*jobs.Job{}, map[string]string{}
	for name, j := range r.jobs {
		all[name] = j.Def
	}
	was := maps.Clone(all)
	for _, file := range r.Args {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		some, faults := jobs.ParseFile(data)
		for _, f := range faults {
			wrong = append(wrong, fmt.Errorf("%s: %w", file, f))
		}
		for _, def := range some {
			if other, twice := fileOf[def.Name]; twice && len(faults) == 0 {
				wrong = append(wrong, fmt.Errorf("%s: job %s is in %s, too", file, def.Name, other))
			}
			fileOf[def.Name] = file
			changes = append(changes, Change{def.Name, jobs.Diff(all[def.Name], def)})
			all[def.Name] = def
		}
		defs = append(defs, some...)
	}
	if len(wrong) == 0 {
		for _, f := range jobs.Faults(was, all) {
			wrong = append(wrong, f)
		}
	}
	op, err := schedule.ApplyOp(defs...)
	if err = errors.Join(append(wrong, err)...); err != nil {
		return fmt.Errorf("nothing is applied:\n%w", err)
	}
	if !r.Flags.Bool("dry-run") {
		return r.ask(ctx, op, nil)
	}
	return r.Print(changes, func(t extension.Table) {
		for _, c := range changes {
			t.Linef("job %s: %s", c.Job, cmp.Or(strings.Join(c.What, "; "), "no change"))
		}
	})
}

// A Change is what applying a job would change.
type Change struct {
	Job  string   `json:"job"`
	What []string `json:"changes"`
}

func runRemove(ctx context.Context, r *request) error {
	op := &schedule.Op{Kind: schedule.OpRemove, Job: r.job, Force: r.Flags.Bool("force")}
	return r.ask(ctx, op, r.Confirm("remove job %s, and make void what waits of it?", r.job))
}

// runRerun is activate, clear and cancel.
func runRerun(kind string) func(context.Context, *request) error {
	return func(ctx context.Context, r *request) error {
		op := &schedule.Op{Kind: kind, Job: r.job, Time: r.at, Only: r.Flags.Bool("only"), Priority: jobs.PriorityHigh}
		if r.part != "" {
			op.Tasks = []string{r.part}
		}
		return r.ask(ctx, op, r.Confirm("%s %s at %s?", kind, path.Join(r.job, r.part), show(r.at)))
	}
}

func runBackfill(ctx context.Context, r *request) error {
	from, err := parseTime(r.Flags.String("from"), far)
	to, fault := parseTime(r.Flags.String("to"), time.Now().UTC())
	switch {
	case err != nil:
		return fmt.Errorf("--from: %w", err)
	case fault != nil:
		return fmt.Errorf("--to: %w", fault)
	case from.Equal(far):
		return extension.Usagef("from when on? say --from TIME: %s", timeHelp)
	case !from.Before(to):
		return extension.Usagef("no time is from %s on and before %s", show(from), show(to))
	}
	op := &schedule.Op{
		Kind: schedule.OpBackfill, Job: r.job, Trigger: r.part, From: from, To: to, Priority: jobs.PriorityBackfill, Order: jobs.CatchUpEarliest,
	}
	if r.Flags.Bool("latest") {
		op.Order = jobs.CatchUpLatest
	}
	question := "run the times of job %s from %s on and before %s that have not run?"
	return r.ask(ctx, op, r.Confirm(question, r.job, show(from), show(to)))
}

func runOps(ctx context.Context, r *request) error {
	ops, err := r.Ledger().Ops(ctx, math.MaxInt)
	if err != nil {
		return err
	}
	list := []*schedule.Op{}
	for _, op := range ops {
		wanted := len(r.Args) == 0 || slices.Contains([]string{op.ID, fmt.Sprint(op.Number)}, r.Args[0])
		if wanted && len(list) < r.most {
			op.Defs = nil // of one that waits
			list = append(list, op)
		}
	}
	return r.Print(list, func(t extension.Table) {
		t.Row("OPERATION", "AT", "BY", "WHAT", "JOB", "OUTCOME")
		for _, op := range list {
			outcome := cmp.Or(op.Outcome, "waits for a worker")
			if op.Refused {
				outcome = "refused: " + outcome
			}
			t.Row(op.Number, show(op.At), words.Dash(op.By), op.Kind, op.Job, strings.ReplaceAll(outcome, "\n", "; "))
		}
	})
}

// targets are the jobs of schedulers.
func targets(ctx context.Context, c *store.Client, owner string) (out []extension.Target, err error) {
	all, err := load(ctx, c, owner)
	for _, s := range all {
		target := extension.Target{Owner: s.name, Part: schedule.GateRuns, Processor: schedule.Processor, Noun: "run"}
		out = append(out, target)
		for _, name := range s.names() {
			target.Part = name
			target.Pause = func(ctx context.Context, p extension.Pause) (string, error) {
				return s.do(ctx, &schedule.Op{Kind: schedule.OpPause, Job: name, By: p.Who, Why: p.Why, For: jobs.Duration(p.For)})
			}
			target.Running = func(ctx context.Context) (int, error) { return s.View().Running(ctx, s.partitions, name) }
			target.Resume = func(ctx context.Context, who string) (string, error) {
				return s.do(ctx, &schedule.Op{Kind: schedule.OpResume, Job: name, By: who})
			}
			out = append(out, target)
		}
	}
	return out, err
}
