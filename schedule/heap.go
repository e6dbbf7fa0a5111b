package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/runnel-go/runnel/internal/jobs"
	ischedule "github.com/runnel-go/runnel/internal/schedule"
)

// mostTimes is how many times a backfill has at most.
const mostTimes = 1_000_000

// aheadAgain is when what catches up looks again, while as many runs wait as may.
const aheadAgain = 250 * time.Millisecond

// fire does what is due in the heap.
func (o *owner) fire() error {
	for more := true; more; {
		due, now, next, err := o.s.calls.Due(o.ctx, o.partition, ischedule.PerCall)
		if err != nil {
			return err
		}
		var fires []*ischedule.Fire
		op, room := int64(0), ischedule.PerCall
		for _, d := range due {
			if n := ischedule.OpOf(d.ID); n > 0 {
				op = min(cmp.Or(op, n), n)
				continue
			}
			f, err := o.plan(d, now, &room)
			if err != nil {
				o.log.Error("trigger does not go on", "trigger", d.ID, "err", err)
				f = &ischedule.Fire{Due: d, To: d.Position, Next: now.Add(time.Minute).UnixMilli()}
			}
			fires = append(fires, f)
		}
		if len(fires) > 0 {
			if err := o.s.calls.Fire(o.ctx, o.partition, o.fence, fires...); err != nil {
				return err
			}
		}
		for _, f := range fires {
			if f.Done && (f.CatchUp != nil || f.Omitted > 0) {
				o.log.Info("times were missed", "trigger", f.ID, "omitted", f.Omitted)
			}
			if f.Over {
				delete(o.lists, f.ID)
			}
		}
		if op > 0 {
			if err := o.operate(op); err != nil {
				return err
			}
		}
		more = next == 0 && !o.over(nil)
	}
	return nil
}

// plan says how something that is due goes on. room is how many times may fire in the same call.
func (o *owner) plan(d ischedule.Due, now time.Time, room *int) (*ischedule.Fire, error) {
	if d.Rule == "" {
		return &ischedule.Fire{Due: d, Over: true}, nil
	}
	rule, err := ischedule.ParseRule(d.Rule)
	if err != nil {
		return nil, err
	}
	f := &ischedule.Fire{Due: d, Source: ischedule.SourceOf(d.ID), To: d.Position}
	if rule.Kind == ischedule.RulePause {
		return o.planPause(f, rule, now)
	}
	times, err := jobs.TimesOf(&rule.Trigger)
	if err != nil {
		return nil, err
	}
	if rule.Kind == ischedule.RuleTrigger {
		return f, o.planTrigger(f, rule, times, time.UnixMilli(d.Position).UTC(), now, room)
	}
	return f, o.planList(f, rule, times, int(d.Position), now, room)
}

// planTrigger plans the times of a trigger that are due.
func (o *owner) planTrigger(f *ischedule.Fire, rule *ischedule.Rule, times *jobs.Times, last, now time.Time, room *int) error {
	p := times.Plan(last, now)
	f.Omitted = p.Omitted
	switch {
	case p.Missed:
		catchUp := &ischedule.Rule{
			Kind: ischedule.RuleCatchUp, Rev: rule.Rev, Trigger: rule.Trigger, From: last.UnixMilli(), Now: now.UnixMilli(), Class: ischedule.Backfill,
		}
		f.CatchUp = &ischedule.Due{ID: f.ID + "#" + strconv.FormatInt(p.Newest.UnixMilli(), 10), Rule: catchUp.String()}
	default: // one, or with CatchUpNone all that are not late
		n := min(len(p.Times), *room)
		if more := n < len(p.Times); more {
			if f.Next = now.UnixMilli(); n == 0 {
				f.Omitted = 0
				return nil
			}
			p.Newest = p.Times[n-1]
		}
		for _, at := range p.Times[:n] {
			f.Times = append(f.Times, at.UnixMilli())
		}
		f.Class = ischedule.Own
		*room -= n
	}
	if !p.Newest.IsZero() {
		last = p.Newest
		f.To = last.UnixMilli()
	}
	if next := times.Next(last); !next.IsZero() && f.Next == 0 {
		f.Next = times.FiresAt(next).UnixMilli()
	}
	return nil
}

// planList plans the next times of what goes through a list.
func (o *owner) planList(f *ischedule.Fire, rule *ischedule.Rule, times *jobs.Times, position int, now time.Time, room *int) error {
	all := o.lists[f.ID]
	if all == nil {
		all = listOf(rule, times)
		o.lists[f.ID] = all
	}
	source, _ := jobs.ParseSource(f.Source)
	waiting, err := o.s.calls.Waiting(o.ctx, o.s.partitions(), source.Job)
	if err != nil {
		return err
	}
	position = min(position, len(all))
	n := min(len(all)-position, *room, cmp.Or(o.s.opts.Ahead, defaultAhead)-int(waiting))
	for i := range max(n, 0) {
		if at := times.FiresAt(time.UnixMilli(all[position+i])); at.After(now) { // a list goes into the future in its order
			if n = i; i == 0 {
				f.Next = at.UnixMilli()
				return nil
			}
			break
		}
	}
	if n <= 0 && position < len(all) {
		f.Next = now.Add(aheadAgain).UnixMilli()
		return nil
	}
	*room -= n
	f.Times, f.Class = all[position:position+n], rule.Class
	f.To, f.Next, f.Over = int64(position+n), now.UnixMilli(), position+n == len(all)
	return nil
}

// listOf returns the logical times, in ms, that a rule goes through beside its trigger.
func listOf(rule *ischedule.Rule, times *jobs.Times) (all []int64) {
	if rule.Kind == ischedule.RuleCatchUp {
		for _, at := range times.Plan(time.UnixMilli(rule.From).UTC(), time.UnixMilli(rule.Now).UTC()).Times {
			all = append(all, at.UnixMilli())
		}
		return all
	}
	for at := times.Next(time.UnixMilli(rule.From - 1).UTC()); !at.IsZero() && at.UnixMilli() < rule.To && len(all) <= mostTimes; at = times.Next(at) {
		all = append(all, at.UnixMilli())
	}
	if rule.Trigger.CatchUp == jobs.CatchUpLatest {
		slices.Reverse(all)
	}
	return all
}

func (o *owner) planPause(f *ischedule.Fire, rule *ischedule.Rule, now time.Time) (*ischedule.Fire, error) {
	if now.UnixMilli() < rule.Until {
		f.Next = rule.Until
		return f, nil
	}
	job := rule.Trigger.Name
	_, err := o.s.calls.Ledger().Submit(o.ctx, &ischedule.Op{ID: fmt.Sprintf("end of pause %d", rule.Rev), Kind: ischedule.OpResume, Job: job, Rev: rule.Rev, Why: "its time was over", At: now})
	f.Over = true
	return f, err
}
