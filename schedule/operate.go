package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/jobs"
	ischedule "github.com/runnel-go/runnel/internal/schedule"
)

// A refusal is why an operation does nothing: its outcome.
type refusal struct{ error }

func refuse(format string, args ...any) error { return refusal{fmt.Errorf(format, args...)} }

// hashesKept is how many replaced definitions of a job are remembered.
const hashesKept = 20

// operate does an operation. It may have been begun before, by this owner or another one: every step may be repeated, and those of an
// earlier operation change nothing behind later ones.
func (o *owner) operate(number int64) error {
	op, err := o.s.calls.Ledger().Op(o.ctx, number)
	if err != nil {
		return err
	}
	op = cmp.Or(op, &ischedule.Op{Number: number}) // refused
	if op.Done.IsZero() {
		outcome, err := o.do(op)
		switch {
		case errors.As(err, new(refusal)) || errors.Is(err, ischedule.ErrLater):
			op.Refused, op.Outcome = true, err.Error()
		case err != nil:
			return fmt.Errorf("operation %d, %s of job %s: %w", number, op.Kind, op.Job, err)
		default:
			op.Outcome = outcome
		}
		op.Done, op.Defs = o.own.Now().UTC().Truncate(time.Millisecond), nil // jobs are large, and operations are many
		log := o.log.With("operation", number, "op", op.Kind, "job", op.Job, "by", op.By, "result", op.Outcome)
		if op.Refused { // of jobs of code nothing else tells it
			log.Warn("operation refused")
		} else {
			log.Info("operation done")
		}
	}
	return o.s.calls.Ledger().Settle(o.ctx, o.fence, op)
}

// An operation is one that is being done, with the jobs as they are.
type operation struct {
	*owner
	*ischedule.Op
	all map[string]*ischedule.Job
}

func (o *owner) do(op *ischedule.Op) (outcome string, err error) {
	all, err := o.s.calls.Ledger().Jobs(o.ctx)
	if err != nil {
		return "", err
	}
	if op.Kind == ischedule.OpRestore {
		return "operations go on behind this number", nil
	}
	x := &operation{o, op, all}
	do := map[string]func() (string, error){
		ischedule.OpApply: x.apply, ischedule.OpRemove: x.remove, ischedule.OpPause: x.pause, ischedule.OpResume: x.resume,
		ischedule.OpActivate: x.activate, ischedule.OpClear: x.activate, ischedule.OpCancel: x.cancel, ischedule.OpBackfill: x.backfill,
	}[op.Kind]
	if do == nil {
		return "", refuse("this release knows no operation %q", op.Kind)
	}
	switch {
	case op.Kind == ischedule.OpApply || all[op.Job] != nil:
		return do()
	case op.Kind == ischedule.OpRemove:
		return "removed", nil // perhaps by this operation, before it was interrupted
	}
	return "", refuse("there is no job %s", op.Job)
}

// apply puts jobs in place of those of the same names. Nothing is stored, and no partition is told anything, until all is known to be right.
func (x *operation) apply() (string, error) {
	changes, lines := map[string]*ischedule.Job{}, make([]string, len(x.Defs))
	for i, def := range x.Defs {
		if err := faults(jobs.Check(def)); err != nil {
			return "", refuse("job %s: %w", def.Name, err)
		}
		j, what := x.next(def), "new"
		if len(j.Replaced) > 0 {
			what = "replaced"
		}
		changes[def.Name] = j
		lines[i] = fmt.Sprintf("%s: %s: %d triggers, %d tasks", def.Name, what, len(def.Triggers), len(def.Tasks))
	}
	left := x.right(changes)
	if left != nil && len(changes) == 0 {
		return "", refusal{left}
	}
	_, known, err := x.s.calls.Ledger().Numbers(x.ctx, x.s.partitions())
	if err != nil {
		return "", err
	}
	if slices.Max(known) > x.Number {
		return "", ischedule.ErrLater
	}
	if err := x.change(changes); err != nil || left == nil {
		return strings.Join(lines, "\n"), err
	}
	return "", refusal{left}
}

// right clears changes that are not right; of the jobs of a program it takes only those away that wait for what is not there, or for
// themselves, or by which others would: what code waits for may come later, from a file. The error says why.
func (x *operation) right(changes map[string]*ischedule.Job) (left error) {
	for {
		wrong := jobs.Faults(defsOf(x.all), defsOf(with(x.all, changes)))
		if len(wrong) == 0 {
			return left
		}
		left = errors.Join(left, faults(wrong))
		n, asked := len(changes), maps.Clone(changes)
		for _, f := range wrong {
			s, _ := jobs.ParseSource(f.Place)
			if asked[s.Job] == nil { // it stays, and would wait for what goes
				maps.DeleteFunc(changes, func(name string, _ *ischedule.Job) bool { return slices.Contains(f.Jobs, name) })
			}
			delete(changes, s.Job)
		}
		if !x.FromCode || len(changes) == n {
			clear(changes)
			return left
		}
	}
}

// next returns the job that a definition makes of the one of its name.
func (x *operation) next(def *jobs.Job) *ischedule.Job {
	j := &ischedule.Job{Rev: x.Number, Def: def, By: x.By, At: x.At.UnixMilli()}
	switch old := x.all[def.Name]; {
	case old != nil && old.Rev == x.Number: // this operation was interrupted behind its last step
		return old
	case old != nil:
		hashes := hashesOf(old)
		j.Replaced, j.Pause = hashes[max(0, len(hashes)-hashesKept):], old.Pause
	}
	return j
}

func (x *operation) remove() (string, error) {
	changes := map[string]*ischedule.Job{x.Job: nil}
	if !x.Force {
		if err := x.right(changes); err != nil {
			return "", refuse("without job %s: %w", x.Job, err)
		}
	}
	return "removed", x.change(changes)
}

func defsOf(all map[string]*ischedule.Job) map[string]*jobs.Job {
	defs := map[string]*jobs.Job{}
	for name, j := range all {
		defs[name] = j.Def
	}
	return defs
}

// with returns jobs with changes of some, nil for one that is gone.
func with(all, changes map[string]*ischedule.Job) map[string]*ischedule.Job {
	all = maps.Clone(all)
	maps.Copy(all, changes)
	maps.DeleteFunc(all, func(_ string, j *ischedule.Job) bool { return j == nil })
	return all
}

// change has the partitions know jobs with changes of some, nil for one that goes, and stores these. Until all partitions know them the old
// ones stay stored, so that a repetition of the operation finds out what goes.
func (x *operation) change(changes map[string]*ischedule.Job) error {
	n, at := x.s.partitions(), x.At.UnixMilli()
	old, now := ischedule.Compile(x.all, n, x.s.partition, at), ischedule.Compile(with(x.all, changes), n, x.s.partition, at)
	for name, j := range changes {
		if was := x.all[name]; was != nil && j != nil {
			x.startEarlier(was.Def, j.Def, now)
		}
	}
	if err := x.s.calls.Redefine(x.ctx, x.Number, old, now); err != nil {
		return err
	}
	if err := x.s.calls.Ledger().StoreJobs(x.ctx, x.fence, x.Number, changes); err != nil {
		return err
	}
	_, known, err := x.s.calls.Ledger().Numbers(x.ctx, n)
	for p, number := range known { // what has forgotten meanwhile knows nothing, or the old jobs
		if number == x.Number {
			old[p] = now[p]
		} else if number == 0 {
			old[p] = ischedule.NewDefinition()
		}
	}
	if err != nil {
		return err
	}
	return x.s.calls.Redefine(x.ctx, x.Number, old, now)
}

// startEarlier has the times caught up that a trigger gained because its start moved back.
func (x *operation) startEarlier(old, def *jobs.Job, now []*ischedule.Definition) {
	for _, t := range def.Triggers {
		for _, was := range old.Triggers {
			if was.Name != t.Name || was.Start.IsZero() || t.Start.IsZero() || !t.Start.Before(was.Start) {
				continue
			}
			source := jobs.Source{Job: def.Name, Name: t.Name, Trigger: true}.String()
			rule := &ischedule.Rule{Kind: ischedule.RuleBackfill, Trigger: t, From: t.Start.UnixMilli(), To: was.Start.UnixMilli(), Class: ischedule.Backfill}
			due := x.beside(source, rule)
			now[x.s.partition(source)].Rules[due.ID] = due
		}
	}
}

// beside returns what the operation has in the heap, for a source.
func (x *operation) beside(source string, rule *ischedule.Rule) ischedule.Due {
	rule.Rev = x.Number
	return ischedule.Due{ID: fmt.Sprintf("%s#op%d", source, x.Number), Rule: rule.String()}
}

// start puts it there.
func (x *operation) start(n int, source string, rule *ischedule.Rule) error {
	d, due := ischedule.NewDefinition(), x.beside(source, rule)
	d.Rules[due.ID] = due
	return x.s.calls.Define(x.ctx, n, x.Number, ischedule.NewDefinition(), d, false)
}

func (x *operation) pause() (string, error) {
	p := &ischedule.Pause{By: x.By, Why: x.Why, At: x.At.UnixMilli(), Number: x.Number}
	if x.For > 0 {
		p.Until = x.At.Add(time.Duration(x.For)).UnixMilli()
		if err := x.start(x.partition, "pause", &ischedule.Rule{Kind: ischedule.RulePause, Trigger: jobs.Trigger{Name: x.Job}, Until: p.Until}); err != nil {
			return "", err
		}
	}
	return "paused; what runs goes on", x.setPause(p)
}

func (x *operation) resume() (string, error) {
	switch p := x.all[x.Job].Pause; {
	case p == nil:
		return "it is not paused", nil
	case x.Rev != 0 && p.Number != x.Rev:
		return "it was paused again", nil
	}
	return "it goes on", x.setPause(nil)
}

func (x *operation) setPause(p *ischedule.Pause) error {
	j := *x.all[x.Job]
	j.Pause = p
	return x.change(map[string]*ischedule.Job{x.Job: &j})
}

// backfill has times of a trigger fire that have not: what catches up goes through them.
func (x *operation) backfill() (string, error) {
	var trigger *jobs.Trigger
	for i, t := range x.all[x.Job].Def.Triggers {
		if t.Name == x.Trigger || x.Trigger == "" && len(x.all[x.Job].Def.Triggers) == 1 {
			trigger = &x.all[x.Job].Def.Triggers[i]
		}
	}
	if trigger == nil {
		return "", refuse("job %s has no trigger %q", x.Job, x.Trigger)
	}
	if x.Order != "" {
		trigger.CatchUp = x.Order
	}
	times, err := jobs.TimesOf(trigger)
	if err != nil {
		return "", err
	}
	source := jobs.Source{Job: x.Job, Name: trigger.Name, Trigger: true}.String()
	to := min(x.To.UnixMilli(), x.At.Add(-time.Duration(trigger.Offset)).UnixMilli()+1) // later ones come by themselves
	rule := &ischedule.Rule{Kind: ischedule.RuleBackfill, Trigger: *trigger, From: max(x.From.UnixMilli(), 0), To: to, Class: ischedule.ClassOf(x.Priority)}
	n := len(listOf(rule, times))
	if n > mostTimes {
		return "", refuse("these are more than %d times: fill them in parts", mostTimes)
	}
	return fmt.Sprintf("begun, with %d times", n), x.start(x.s.partition(source), source, rule)
}
