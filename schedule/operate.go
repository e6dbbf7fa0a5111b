package schedule

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
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
		case errors.As(err, new(refusal)):
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
	x := &operation{o, op, all}
	if op.Kind == ischedule.OpRestore {
		return x.restore()
	}
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
	old := x.all[x.Job]
	j := &ischedule.Job{Rev: x.Number, Def: def, By: x.By, At: x.At}
	if old != nil {
		was := old.Def
		if old.Rev == x.Number {
			was = old.Was // this operation has begun before
		}
		j.Was, j.Replaced, j.Pause = was, old.Replaced, old.Pause
		if was != nil && old.Rev != x.Number {
			hash, err := hashOf(was)
			if err != nil {
				return "", err
			}
			j.Replaced = append(j.Replaced, hash)
			j.Replaced = j.Replaced[max(0, len(j.Replaced)-hashesKept):]
		}
	}
	return x.replace(old, j)
}

func (x *operation) remove() (string, error) {
	old := x.all[x.Job]
	if others := x.dependents(); len(others) > 0 && !x.Force {
		return "", refuse("%s wait for tasks of job %s", strings.Join(others, ", "), x.Job)
	}
	return x.replace(old, nil)
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

// replace puts j in place of a job; nil removes it. The old definition stays stored until all partitions know the new one, so that a
// repetition finds out what goes.
func (x *operation) replace(old, j *ischedule.Job) (string, error) {
	before, after := map[string]*ischedule.Job{}, map[string]*ischedule.Job{}
	for name, one := range x.all {
		if name != x.Job {
			before[name], after[name] = one, one
		}
	}
	if old != nil {
		before[x.Job] = old
		if old.Rev == x.Number {
			delete(before, x.Job)
			if old.Was != nil {
				before[x.Job] = &ischedule.Job{Def: old.Was}
			}
		}
	}
	if j != nil {
		after[x.Job] = j
		if _, wrong := jobs.NewGraph(defsOf(after)); len(wrong) > 0 {
			return "", refusal{faults(wrong)}
		}
		if err := x.store(j); err != nil {
			return "", err
		}
	}
	n := x.s.partitions()
	now := ischedule.Compile(after, n, x.s.partition, x.At)
	if before[x.Job] != nil && j != nil {
		x.startEarlier(before[x.Job].Def, j, now)
	}
	done, err := x.s.calls.Redefine(x.ctx, x.Number, ischedule.Compile(before, n, x.s.partition, x.At), now)
	if err != nil || !done {
		return "", cmp.Or(err, error(errLater))
	}
	if j == nil {
		return "removed", x.store(nil)
	}
	j.Was = nil
	what := "replaced"
	if before[x.Job] == nil {
		what = "new"
		if err := x.hold(j, nil); err != nil { // one of that name that was before may have been paused
			return "", err
		}
	}
	return fmt.Sprintf("%s: %d triggers, %d tasks", what, len(j.Def.Triggers), len(j.Def.Tasks)), x.store(j)
}

// startEarlier has the times caught up that a trigger gained because its start moved back.
func (x *operation) startEarlier(old *jobs.Job, j *ischedule.Job, now []*ischedule.Definition) {
	for _, t := range j.Def.Triggers {
		for _, was := range old.Triggers {
			if was.Name != t.Name || was.Start.IsZero() || t.Start.IsZero() || !t.Start.Before(was.Start) {
				continue
			}
			source := jobs.Source{Job: x.Job, Name: t.Name, Trigger: true}.String()
			rule := &ischedule.Rule{Kind: ischedule.RuleBackfill, Rev: x.Number, Trigger: t, From: t.Start.UnixMilli(), To: was.Start.UnixMilli(), Class: ischedule.Backfill}
			id := fmt.Sprintf("%s#op%d", source, x.Number)
			now[x.s.partition(source)].Rules[id] = ischedule.Due{ID: id, Rule: rule.String(), Position: "0"}
		}
	}
}

// errLater is refused by what a later operation has changed.
var errLater = refusal{errors.New("a later operation was there before")}

func (x *operation) store(j *ischedule.Job) error {
	done, err := x.s.calls.Ledger().StoreJob(x.ctx, x.fence, x.Job, x.Number, j)
	if err == nil && !done {
		err = errLater
	}
	return err
}

func (x *operation) pause() (string, error) {
	j := x.all[x.Job]
	pause := &ischedule.Pause{By: x.By, Why: x.Why, At: x.At, Number: x.Number}
	if x.For > 0 {
		pause.Until = x.At + x.For.Milliseconds()
	}
	if err := x.hold(j, pause); err != nil {
		return "", err
	}
	j.Pause = pause
	if pause.Until > 0 {
		end := ischedule.NewDefinition()
		id := fmt.Sprintf("pause#%d", x.Number)
		rule := &ischedule.Rule{Kind: ischedule.RulePause, Rev: x.Number, Trigger: jobs.Trigger{Name: x.Job}, Until: pause.Until}
		end.Rules[id] = ischedule.Due{ID: id, Rule: rule.String(), Position: "0"}
		if _, err := x.s.calls.Define(x.ctx, x.partition, x.Number, ischedule.NewDefinition(), end); err != nil {
			return "", err
		}
	}
	return "paused; what runs goes on", x.store(j)
}

func (x *operation) resume() (string, error) {
	j := x.all[x.Job]
	switch {
	case j.Pause == nil:
		return "it is not paused", nil
	case x.Rev != 0 && j.Pause.Number != x.Rev:
		return "it was paused again", nil
	}
	if err := x.hold(j, nil); err != nil {
		return "", err
	}
	j.Pause = nil
	return "it goes on", x.store(j)
}

// restore has all partitions know the jobs.
func (x *operation) restore() (string, error) {
	for _, j := range x.all {
		if j.Pause != nil {
			if err := x.hold(j, j.Pause); err != nil {
				return "", err
			}
		}
	}
	n := x.s.partitions()
	for n, def := range ischedule.Compile(x.all, n, x.s.partition, x.At) {
		if done, err := x.s.calls.Define(x.ctx, n, x.Number, ischedule.NewDefinition(), def); err != nil || !done {
			return "", cmp.Or(err, error(errLater))
		}
	}
	return fmt.Sprintf("restored: %d jobs", len(x.all)), nil
}

// hold pauses a job in all partitions with parts of it, or lets it go on.
func (x *operation) hold(j *ischedule.Job, pause *ischedule.Pause) error {
	job, text := j.Def.Name, ""
	if pause != nil {
		data, err := json.Marshal(pause)
		if err != nil {
			return err
		}
		text = string(data)
	}
	holds := make([]*ischedule.Hold, x.s.partitions())
	for n := range holds {
		holds[n] = &ischedule.Hold{Operation: x.Number, Job: job, Pause: text}
	}
	for _, t := range j.Def.Triggers {
		id := jobs.Source{Job: job, Name: t.Name, Trigger: true}.String()
		h := holds[x.s.partition(id)]
		h.Triggers = append(h.Triggers, id)
	}
	for _, t := range j.Def.Tasks {
		id := jobs.Source{Job: job, Name: t.Name}.String()
		h := holds[x.s.partition(id)]
		h.Tasks = append(h.Tasks, id)
	}
	for n, h := range holds {
		done, err := x.s.calls.Hold(x.ctx, n, h)
		if err != nil || !done {
			return cmp.Or(err, error(errLater))
		}
	}
	return nil
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
	rule := &ischedule.Rule{Kind: ischedule.RuleBackfill, Rev: x.Number, Trigger: *trigger, From: x.From, To: to, Class: x.Priority}
	n := len(*listOf(rule, times))
	if n > mostTimes {
		return "", refuse("these are more than %d times: fill them in parts", mostTimes)
	}
	id := fmt.Sprintf("%s#op%d", source, x.Number)
	d := ischedule.NewDefinition()
	d.Rules[id] = ischedule.Due{ID: id, Rule: rule.String(), Position: "0"}
	if done, err := x.s.calls.Define(x.ctx, x.s.partition(source), x.Number, ischedule.NewDefinition(), d); err != nil || !done {
		return "", cmp.Or(err, error(errLater))
	}
	return fmt.Sprintf("begun, with %d times", n), nil
}
