package schedule

import (
	"crypto/sha256"
	"encoding/hex"
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
	if op == nil {
		op = &ischedule.Op{Number: number}
	}
	if op.Done == 0 {
		outcome, err := o.do(op)
		switch {
		case errors.As(err, new(refusal)) || errors.Is(err, ischedule.ErrLater):
			op.Refused, op.Outcome = true, err.Error()
		case err != nil:
			return fmt.Errorf("operation %d, %s of job %s: %w", number, op.Kind, op.Job, err)
		default:
			op.Outcome = outcome
		}
		op.Done = o.own.Now().UnixMilli()
		o.log.Info("operation done", "operation", number, "op", op.Kind, "job", op.Job, "by", op.By, "result", op.Outcome)
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
	switch missing := all[op.Job] == nil; {
	case missing && op.Kind == ischedule.OpRemove:
		return "removed", nil // perhaps by this operation, before it was interrupted
	case missing && op.Kind != ischedule.OpApply:
		return "", refuse("there is no job %s", op.Job)
	}
	return do()
}

// hashOf tells definitions apart.
func hashOf(j *jobs.Job) (string, error) {
	text, err := j.Encode()
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), err
}

func (x *operation) apply() (string, error) {
	def, err := jobs.Decode(x.Def)
	if err != nil {
		return "", refuse("%w", err)
	}
	if err := faults(jobs.Check(def)); err != nil {
		return "", refusal{err}
	}
	j := &ischedule.Job{Rev: x.Number, Def: def, By: x.By, At: x.At}
	if old := x.all[x.Job]; old != nil {
		j.Was, j.Replaced, j.Pause = old.Def, old.Replaced, old.Pause
		if old.Rev == x.Number { // this operation has begun before
			j.Was = old.Was
		} else {
			hash, err := hashOf(old.Def)
			if err != nil {
				return "", err
			}
			j.Replaced = append(j.Replaced, hash)
			j.Replaced = j.Replaced[max(0, len(j.Replaced)-hashesKept):]
		}
	}
	if _, wrong := jobs.NewGraph(defsOf(x.with(j))); len(wrong) > 0 {
		return "", refusal{faults(wrong)}
	}
	what, old := "new", (*ischedule.Job)(nil)
	if j.Was != nil {
		what, old = "replaced", &ischedule.Job{Def: j.Was}
	}
	// The old definition stays stored until all partitions know the new one, so that a repetition finds out what goes.
	if err := x.store(j); err != nil {
		return "", err
	}
	if err := x.tell(old, j); err != nil {
		return "", err
	}
	j.Was = nil
	return fmt.Sprintf("%s: %d triggers, %d tasks", what, len(def.Triggers), len(def.Tasks)), x.store(j)
}

func (x *operation) remove() (string, error) {
	if others := x.dependents(); len(others) > 0 && !x.Force {
		return "", refuse("%s wait for tasks of job %s", strings.Join(others, ", "), x.Job)
	}
	if err := x.tell(x.all[x.Job], nil); err != nil {
		return "", err
	}
	return "removed", x.store(nil)
}

// dependents returns the tasks of other jobs that wait for tasks of the job.
func (x *operation) dependents() (tasks []string) {
	graph, _ := jobs.NewGraph(defsOf(x.all))
	for _, t := range x.all[x.Job].Def.Tasks {
		for _, to := range graph.Targets(jobs.Source{Job: x.Job, Name: t.Name}) {
			if to.Job != x.Job {
				tasks = append(tasks, to.String())
			}
		}
	}
	slices.Sort(tasks)
	return slices.Compact(tasks)
}

func defsOf(all map[string]*ischedule.Job) map[string]*jobs.Job {
	defs := map[string]*jobs.Job{}
	for name, j := range all {
		defs[name] = j.Def
	}
	return defs
}

// with returns the jobs with j in place of that of the operation, nil for none.
func (x *operation) with(j *ischedule.Job) map[string]*ischedule.Job {
	all := maps.Clone(x.all)
	if all[x.Job] = j; j == nil {
		delete(all, x.Job)
	}
	return all
}

// tell has the partitions know j in place of old, nil for none.
func (x *operation) tell(old, j *ischedule.Job) error {
	n := x.s.partitions()
	now := ischedule.Compile(x.with(j), n, x.s.partition, x.At)
	if old != nil && j != nil {
		x.startEarlier(old.Def, j, now)
	}
	return x.s.calls.Redefine(x.ctx, x.Number, ischedule.Compile(x.with(old), n, x.s.partition, x.At), now)
}

// startEarlier has the times caught up that a trigger gained because its start moved back.
func (x *operation) startEarlier(old *jobs.Job, j *ischedule.Job, now []*ischedule.Definition) {
	for _, t := range j.Def.Triggers {
		for _, was := range old.Triggers {
			if was.Name != t.Name || was.Start.IsZero() || t.Start.IsZero() || !t.Start.Before(was.Start) {
				continue
			}
			source := jobs.Source{Job: x.Job, Name: t.Name, Trigger: true}.String()
			rule := &ischedule.Rule{Kind: ischedule.RuleBackfill, Trigger: t, From: t.Start.UnixMilli(), To: was.Start.UnixMilli(), Class: ischedule.Backfill}
			due := x.beside(source, rule)
			now[x.s.partition(source)].Rules[due.ID] = due
		}
	}
}

func (x *operation) store(j *ischedule.Job) error {
	return x.s.calls.Ledger().StoreJob(x.ctx, x.fence, x.Job, x.Number, j)
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
	return x.s.calls.Define(x.ctx, n, x.Number, ischedule.NewDefinition(), d)
}

func (x *operation) pause() (string, error) {
	p := &ischedule.Pause{By: x.By, Why: x.Why, At: x.At, Number: x.Number}
	if x.For > 0 {
		p.Until = x.At + x.For.Milliseconds()
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
	if err := x.tell(x.all[x.Job], &j); err != nil {
		return err
	}
	return x.store(&j)
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
	to := min(x.To, x.At-time.Duration(trigger.Offset).Milliseconds()+1) // later ones come by themselves
	rule := &ischedule.Rule{Kind: ischedule.RuleBackfill, Trigger: *trigger, From: x.From, To: to, Class: x.Priority}
	n := len(listOf(rule, times))
	if n > mostTimes {
		return "", refuse("these are more than %d times: fill them in parts", mostTimes)
	}
	return fmt.Sprintf("begun, with %d times", n), x.start(x.s.partition(source), source, rule)
}
