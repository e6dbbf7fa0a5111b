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

	job   string
	times *jobs.Times
}

// states returns the states of jobs.
func (s *scheduler) states(ctx context.Context, names ...string) ([]JobState, error) {
	all := []JobState{}
	for _, name := range names {
		triggers, err := s.triggers(ctx, name)
		if err != nil {
			return nil, err
		}
		cells, err := (&request{scheduler: s, job: name}).cells(ctx, far, 1)
		if err != nil {
			return nil, err
		}
		last := map[string]int{}
		for _, of := range cells {
			last[of[0].State]++
		}
		j := s.jobs[name]
		all = append(all, JobState{
			Scheduler: s.name, Job: name, Description: j.Def.Description, Rev: j.Rev, By: j.By, At: timeAt(j.At), Pause: j.Pause,
			Triggers: triggers, Tasks: len(j.Def.Tasks), Last: last,
		})
	}
	return all, nil
}

// triggers returns the triggers of jobs, without names of all.
func (s *scheduler) triggers(ctx context.Context, names ...string) ([]TriggerState, error) {
	if len(names) == 0 {
		names = s.names()
	}
	all := []TriggerState{}
	for _, job := range names {
		for i := range s.jobs[job].Def.Triggers {
			t := &s.jobs[job].Def.Triggers[i]
			id := jobs.Source{Job: job, Name: t.Name, Trigger: true}.String()
			stored, err := s.View().Trigger(ctx, s.partition(id), id)
			times, fault := jobs.TimesOf(t)
			if err = cmp.Or(err, fault); err != nil {
				return nil, err
			}
			out := TriggerState{Trigger: t.Name, Omitted: stored.Omitted, job: job, times: times}
			if position := time.UnixMilli(stored.Position).UTC(); stored.There {
				if times.Next(position.Add(-time.Millisecond)).Equal(position) {
					out.Last = position
				}
				if out.Next = times.Next(position); !out.Next.IsZero() {
					out.At = stored.At
				}
			}
			all = append(all, out)
		}
	}
	return all, nil
}

func runLs(ctx context.Context, r *request) error {
	states, err := r.states(ctx, r.names()...)
	if err != nil {
		return err
	}
	return r.Print(states, func(t extension.Table) {
		t.Row("JOB", "TASKS", "LAST", "NEXT", "IN", "LAST RUNS", "HELD")
		for _, j := range states {
			var last, next time.Time
			in, held := "-", "-"
			for _, one := range j.Triggers {
				if one.Last.After(last) {
					last = one.Last
				}
				if !one.At.IsZero() && (next.IsZero() || one.Next.Before(next)) {
					next, in = one.Next, until(one.At)
				}
			}
			if j.Pause != nil {
				held = strings.TrimSuffix("paused: "+j.Pause.Why, ": ")
			}
			var runs []string
			for _, state := range slices.Sorted(maps.Keys(j.Last)) {
				runs = append(runs, fmt.Sprintf("%d %s", j.Last[state], state))
			}
			t.Row(j.Job, j.Tasks, show(last), show(next), in, words.Dash(strings.Join(runs, ", ")), held)
		}
	})
}

func until(t time.Time) string { return words.Short(max(0, time.Until(t))) }

func runShow(ctx context.Context, r *request) error {
	states, err := r.states(ctx, r.job)
	if err != nil {
		return err
	}
	j := states[0]
	j.Definition = r.def()
	definition, _ := json.MarshalIndent(j.Definition, "", "  ") // as JSON it was stored
	return r.Print(j, func(t extension.Table) {
		t.Linef("job %s of scheduler %s, by operation %d of %s at %s", j.Job, r.name, j.Rev, words.Dash(j.By), show(j.At))
		if p := j.Pause; p != nil {
			t.Linef("paused by %s at %s: %s; until %s; resume %s/%s ends it",
				words.Dash(p.By), show(timeAt(p.At)), words.Dash(p.Why), show(timeAt(p.Until)), r.name, j.Job)
		}
		t.Row("TRIGGER", "LAST", "NEXT", "FIRES", "OMITTED")
		for _, one := range j.Triggers {
			t.Row(one.Trigger, show(one.Last), show(one.Next), show(one.At), one.Omitted)
		}
		for line := range strings.SplitSeq(string(definition), "\n") {
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

func runNext(ctx context.Context, r *request) error {
	var names []string
	for _, name := range r.Args {
		if err := r.find(name, "JOB"); err != nil {
			return err
		}
		names = append(names, r.job)
	}
	triggers, err := r.triggers(ctx, names...)
	if err != nil {
		return err
	}
	list := []NextTime{}
	for _, t := range triggers {
		for at, n := t.Next, 0; !at.IsZero() && n < r.most; at, n = t.times.Next(at), n+1 {
			list = append(list, NextTime{t.job, t.Trigger, at, t.times.FiresAt(at)})
		}
	}
	slices.SortFunc(list, func(a, b NextTime) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Job, b.Job), cmp.Compare(a.Trigger, b.Trigger))
	})
	list = list[:min(len(list), r.most)]
	return r.Print(list, func(t extension.Table) {
		t.Row("FIRES", "IN", "JOB", "TRIGGER", "TIME")
		for _, n := range list {
			t.Row(show(n.At), until(n.At), n.Job, n.Trigger, show(n.Time))
		}
	})
}
