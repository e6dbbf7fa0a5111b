package schedulers

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/jobs"
	"github.com/runnel-go/runnel/internal/rules"
	"github.com/runnel-go/runnel/internal/schedule"
)

// Asked is what commands print that ask for an operation.
type Asked struct {
	Operation int64  `json:"operation"`
	ID        string `json:"id"`
	Job       string `json:"job"`
	Outcome   string `json:"outcome,omitempty"` // "" with --no-wait
}

const (
	flagLimit  = "limit"
	flagID     = "id"
	flagNoWait = "no-wait"
	flagDryRun = "dry-run"
)

// opPoll is how often a command looks whether its operation is done.
const opPoll = 50 * time.Millisecond

// ask submits operations and waits for them.
func ask(ctx context.Context, env *extension.Env, s *scheduler, ops ...*schedule.Op) error {
	var all []Asked
	for i, op := range ops {
		id := env.Flags.String(flagID)
		if id != "" && len(ops) > 1 {
			id = fmt.Sprintf("%s %d", id, i)
		}
		op.ID, op.By, op.At = cmp.Or(id, rand.Text()), rules.Whoami(), time.Now().UnixMilli()
		op.Why = env.Flags.String("why")
		asked := Asked{ID: op.ID, Job: op.Job}
		_, err := env.Audited(ctx, "schedule "+op.Kind, s.name+"/"+op.Job, func(ctx context.Context) (string, error) {
			number, err := s.Ledger().Submit(ctx, op)
			if err != nil {
				return "", err
			}
			asked.Operation = number
			if env.Flags.Bool(flagNoWait) {
				return fmt.Sprintf("operation %d", number), nil
			}
			asked.Outcome, err = s.Ledger().WaitOp(ctx, number, opPoll)
			return asked.Outcome, err
		})
		if err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("%w: is a worker of the app running?", err)
			}
			return fmt.Errorf("%s of job %s: %w", op.Kind, op.Job, err)
		}
		all = append(all, asked)
	}
	return env.Print(all, func(t extension.Table) {
		for _, a := range all {
			t.Linef("job %s: %s (operation %d)", a.Job, cmp.Or(a.Outcome, "stored"), a.Operation)
		}
	})
}

func runApply(ctx context.Context, env *extension.Env) error {
	var defs []*jobs.Job
	var wrong []error
	for _, file := range env.Args {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		some, faults := jobs.ParseFile(data)
		for _, f := range faults {
			wrong = append(wrong, fmt.Errorf("%s: %w", file, f))
		}
		defs = append(defs, some...)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("nothing is applied:\n%w", errors.Join(wrong...))
	}
	s, err := one(ctx, env)
	if err != nil {
		return err
	}
	stored, err := s.Ledger().Jobs(ctx)
	if err != nil {
		return err
	}
	all := map[string]*jobs.Job{}
	for name, j := range stored {
		all[name] = j.Def
	}
	for _, def := range defs {
		all[def.Name] = def
	}
	if _, faults := jobs.NewGraph(all); len(faults) > 0 {
		for _, f := range faults {
			wrong = append(wrong, f)
		}
		return fmt.Errorf("nothing is applied:\n%w", errors.Join(wrong...))
	}
	if env.Flags.Bool(flagDryRun) {
		return dryRun(env, stored, defs)
	}
	var ops []*schedule.Op
	for _, def := range defs {
		text, err := def.Encode()
		if err != nil {
			return err
		}
		ops = append(ops, &schedule.Op{Kind: schedule.OpApply, Job: def.Name, Def: text})
	}
	return ask(ctx, env, s, ops...)
}

// A Change is what applying a job would change.
type Change struct {
	Job  string   `json:"job"`
	What []string `json:"changes"`
}

func dryRun(env *extension.Env, stored map[string]*schedule.Job, defs []*jobs.Job) error {
	changes := []Change{}
	for _, def := range defs {
		c := Change{Job: def.Name, What: []string{"new"}}
		if old := stored[def.Name]; old != nil {
			c.What = jobs.Diff(old.Def, def)
		}
		changes = append(changes, c)
	}
	return env.Print(changes, func(t extension.Table) {
		for _, c := range changes {
			t.Linef("job %s: %s", c.Job, cmp.Or(strings.Join(c.What, "; "), "no change"))
		}
	})
}

func runRemove(ctx context.Context, env *extension.Env) error {
	s, j, _, err := jobOf(ctx, env, 1)
	if err != nil {
		return err
	}
	if err := env.Confirm("remove job %s, and make void what waits of it?", j.Def.Name); err != nil {
		return err
	}
	return ask(ctx, env, s, &schedule.Op{Kind: schedule.OpRemove, Job: j.Def.Name, Force: env.Flags.Bool("force")})
}

// jobOf returns the job of the first argument, JOB or JOB/PART, and the part.
func jobOf(ctx context.Context, env *extension.Env, most int) (*scheduler, *schedule.Job, string, error) {
	if err := tooMany(env, most); err != nil {
		return nil, nil, "", err
	}
	s, err := one(ctx, env)
	if err != nil {
		return nil, nil, "", err
	}
	name, part := splitPart(argOf(env, 0))
	j, err := s.job(ctx, name)
	return s, j, part, err
}

// runRerun is activate, clear and cancel.
func runRerun(kind string) func(context.Context, *extension.Env) error {
	return func(ctx context.Context, env *extension.Env) error {
		s, j, task, err := jobOf(ctx, env, 2)
		if err != nil {
			return err
		}
		if argOf(env, 1) == "" {
			return extension.Usagef("at which logical time? %s", timeHelp)
		}
		op := &schedule.Op{Kind: kind, Job: j.Def.Name, Only: env.Flags.Bool("only")}
		if task != "" {
			if _, err := taskOf(j, task); err != nil {
				return err
			}
			op.Tasks = []string{task}
		} else if kind == schedule.OpCancel {
			return extension.Usagef("which task? say JOB/TASK")
		}
		at, err := s.timeOf(ctx, j.Def.Name, task, argOf(env, 1))
		if err != nil {
			return err
		}
		op.Time = at.UnixMilli()
		if err := env.Confirm("%s %s at %s?", kind, argOf(env, 0), show(at)); err != nil {
			return err
		}
		return ask(ctx, env, s, op)
	}
}

func runBackfill(ctx context.Context, env *extension.Env) error {
	s, j, trigger, err := jobOf(ctx, env, 1)
	if err != nil {
		return err
	}
	op := &schedule.Op{Kind: schedule.OpBackfill, Job: j.Def.Name, Trigger: trigger, Priority: schedule.Backfill, Order: jobs.CatchUpEarliest}
	if env.Flags.Bool("latest") {
		op.Order = jobs.CatchUpLatest
	}
	now := time.Now()
	from, err := parseTime(env.Flags.String("from"), now)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	to := now
	if text := env.Flags.String("to"); text != "" {
		if to, err = parseTime(text, now); err != nil {
			return fmt.Errorf("--to: %w", err)
		}
	}
	if !from.Before(to) {
		return extension.Usagef("no time is from %s on and before %s", show(from), show(to))
	}
	op.From, op.To = from.UnixMilli(), to.UnixMilli()
	if err := env.Confirm("run the times of job %s from %s on and before %s that have not run?", j.Def.Name, show(from), show(to)); err != nil {
		return err
	}
	return ask(ctx, env, s, op)
}

// OpState is an operation as ops prints it.
type OpState struct {
	Operation int64     `json:"operation"`
	ID        string    `json:"id"`
	Kind      string    `json:"op"`
	Job       string    `json:"job"`
	By        string    `json:"by,omitempty"`
	Why       string    `json:"why,omitempty"`
	At        time.Time `json:"at"`
	Done      time.Time `json:"done,omitzero"`
	Refused   bool      `json:"refused"`
	Outcome   string    `json:"outcome,omitempty"`
}

func runOps(ctx context.Context, env *extension.Env) error {
	if err := tooMany(env, 1); err != nil {
		return err
	}
	s, err := one(ctx, env)
	if err != nil {
		return err
	}
	most := env.Flags.Int(flagLimit)
	if argOf(env, 0) != "" {
		most = 1 << 30
	}
	all, err := s.Ledger().Ops(ctx, most)
	if err != nil {
		return err
	}
	list := []OpState{}
	for _, op := range all {
		if id := argOf(env, 0); id == "" || id == op.ID || id == fmt.Sprint(op.Number) {
			list = append(list, OpState{op.Number, op.ID, op.Kind, op.Job, op.By, op.Why, timeAt(op.At), timeAt(op.Done), op.Refused, op.Outcome})
		}
	}
	return env.Print(list, func(t extension.Table) {
		t.Row("OPERATION", "AT", "BY", "WHAT", "JOB", "OUTCOME")
		for _, op := range list {
			outcome := cmp.Or(op.Outcome, "waits for a worker")
			if op.Refused {
				outcome = "refused: " + outcome
			}
			t.Row(op.Operation, show(op.At), cmp.Or(op.By, "-"), op.Kind, op.Job, outcome)
		}
	})
}
