package schedulers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/jobs"
	"github.com/runnel-go/runnel/internal/schedule"
	"github.com/runnel-go/runnel/internal/words"
)

// A JobState is a job, as ls and show have it.
type JobState struct {
	Scheduler   string          `json:"scheduler"`
	Job         string          `json:"job"`
	Description string          `json:"description,omitempty"`
	Rev         int64           `json:"operation"` // that made it so
	By          string          `json:"by,omitempty"`
	At          time.Time       `json:"at"`
	Pause       *schedule.Pause `json:"pause,omitempty"`
	Triggers    []TriggerState  `json:"triggers"`
	Tasks       int             `json:"tasks"`
	Last        map[string]int  `json:"last"` // states of the tasks at their newest times
	Definition  *jobs.Job       `json:"definition,omitempty"`
}

// A TriggerState is a trigger of a job.
type TriggerState struct {
	Trigger string    `json:"trigger"`
	Last    time.Time `json:"last,omitzero"` // logical time that fired
	Next    time.Time `json:"next,omitzero"` // logical time
	At      time.Time `json:"at,omitzero"`   // when that fires; none while the job is paused
	Omitted int64     `json:"omitted"`       // times that were left out
}

func (s *scheduler) state(ctx context.Context, name string, j *schedule.Job) (*JobState, error) {
	out := &JobState{
		Scheduler: s.name, Job: name, Description: j.Def.Description, Rev: j.Rev, By: j.By, At: time.UnixMilli(j.At).UTC(), Pause: j.Pause,
		Triggers: []TriggerState{}, Tasks: len(j.Def.Tasks), Last: map[string]int{},
	}
	for i := range j.Def.Triggers {
		t, err := s.trigger(ctx, name, &j.Def.Triggers[i])
		if err != nil {
			return nil, err
		}
		out.Triggers = append(out.Triggers, t)
	}
	g, err := s.grid(ctx, name, far, 1)
	if err != nil {
		return nil, err
	}
	for _, row := range g.Tasks {
		for _, c := range row.Cells {
			out.Last[c.State]++
		}
	}
	return out, nil
}

func (s *scheduler) trigger(ctx context.Context, job string, t *jobs.Trigger) (out TriggerState, err error) {
	id := jobs.Source{Job: job, Name: t.Name, Trigger: true}.String()
	states, err := s.View().Triggers(ctx, s.partition(id), id)
	if err != nil {
		return out, err
	}
	out = TriggerState{Trigger: t.Name, Omitted: states[0].Omitted, At: states[0].At}
	if !states[0].There {
		return out, nil
	}
	times, err := jobs.TimesOf(t)
	if err != nil {
		return out, err
	}
	position := time.UnixMilli(states[0].Position).UTC()
	if next := times.Next(position.Add(-time.Millisecond)); next.Equal(position) {
		out.Last = position
	}
	if out.Next = times.Next(position); out.Next.IsZero() {
		out.At = time.Time{}
	}
	return out, nil
}

func runLs(ctx context.Context, env *extension.Env) error {
	if err := tooMany(env, 0); err != nil {
		return err
	}
	s, err := one(ctx, env)
	if err != nil {
		return err
	}
	all, err := s.Ledger().Jobs(ctx)
	if err != nil {
		return err
	}
	states := []*JobState{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		state, err := s.state(ctx, name, all[name])
		if err != nil {
			return err
		}
		states = append(states, state)
	}
	return env.Print(states, func(t extension.Table) {
		t.Row("JOB", "TASKS", "LAST", "NEXT", "IN", "LAST RUNS", "HELD")
		for _, j := range states {
			last, next, in := time.Time{}, time.Time{}, "-"
			for _, tr := range j.Triggers {
				if tr.Last.After(last) {
					last = tr.Last
				}
				if !tr.At.IsZero() && (next.IsZero() || tr.Next.Before(next)) {
					next, in = tr.Next, words.Short(max(0, time.Until(tr.At)))
				}
			}
			held := "-"
			if p := j.Pause; p != nil {
				held = "paused"
				if p.Why != "" {
					held += ": " + p.Why
				}
			}
			t.Row(j.Job, j.Tasks, show(last), show(next), in, cmp.Or(j.lastRuns(), "-"), held)
		}
	})
}

func (j *JobState) lastRuns() string {
	var parts []string
	for _, state := range slices.Sorted(maps.Keys(j.Last)) {
		parts = append(parts, fmt.Sprintf("%d %s", j.Last[state], state))
	}
	return strings.Join(parts, ", ")
}

func runShow(ctx context.Context, env *extension.Env) error {
	if err := tooMany(env, 1); err != nil {
		return err
	}
	s, err := one(ctx, env)
	if err != nil {
		return err
	}
	j, err := s.job(ctx, argOf(env, 0))
	if err != nil {
		return err
	}
	state, err := s.state(ctx, j.Def.Name, j)
	if err != nil {
		return err
	}
	state.Definition = j.Def
	definition, err := json.MarshalIndent(j.Def, "", "  ")
	if err != nil {
		return err
	}
	return env.Print(state, func(t extension.Table) {
		t.Linef("job %s of scheduler %s, by operation %d of %s at %s", state.Job, s.name, j.Rev, cmp.Or(j.By, "-"), show(state.At))
		if p := j.Pause; p != nil {
			t.Linef("paused by %s at %s: %s; until %s; resume %s/%s ends it", cmp.Or(p.By, "-"), show(timeAt(p.At)), cmp.Or(p.Why, "-"), show(timeAt(p.Until)), s.name, state.Job)
		}
		t.Row("TRIGGER", "LAST", "NEXT", "FIRES", "OMITTED")
		for _, tr := range state.Triggers {
			t.Row(tr.Trigger, show(tr.Last), show(tr.Next), show(tr.At), tr.Omitted)
		}
		for _, line := range strings.Split(string(definition), "\n") {
			t.Linef("%s", line)
		}
	})
}

// A NextTime is a logical time to come.
type NextTime struct {
	Job     string    `json:"job"`
	Trigger string    `json:"trigger"`
	Time    time.Time `json:"time"`
	At      time.Time `json:"at"` // when it fires
}

func runNext(ctx context.Context, env *extension.Env) error {
	if err := tooMany(env, 1); err != nil {
		return err
	}
	s, err := one(ctx, env)
	if err != nil {
		return err
	}
	all, err := s.Ledger().Jobs(ctx)
	if err != nil {
		return err
	}
	if name := argOf(env, 0); name != "" {
		j, err := s.job(ctx, name)
		if err != nil {
			return err
		}
		all = map[string]*schedule.Job{name: j}
	}
	most := env.Flags.Int(flagLimit)
	if most < 1 || most > 1000 {
		return extension.Usagef("--limit %d is not between 1 and 1 000", most)
	}
	list := []NextTime{}
	for name, j := range all {
		for i := range j.Def.Triggers {
			t := &j.Def.Triggers[i]
			state, err := s.trigger(ctx, name, t)
			if err != nil {
				return err
			}
			times, err := jobs.TimesOf(t)
			if err != nil {
				return err
			}
			for at, n := state.Next, 0; !at.IsZero() && n < most; at, n = times.Next(at), n+1 {
				list = append(list, NextTime{name, t.Name, at, times.FiresAt(at)})
			}
		}
	}
	slices.SortFunc(list, func(a, b NextTime) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Job, b.Job), cmp.Compare(a.Trigger, b.Trigger))
	})
	list = list[:min(len(list), most)]
	return env.Print(list, func(t extension.Table) {
		t.Row("FIRES", "IN", "JOB", "TRIGGER", "TIME")
		for _, n := range list {
			t.Row(show(n.At), words.Short(max(0, time.Until(n.At))), n.Job, n.Trigger, show(n.Time))
		}
	})
}
