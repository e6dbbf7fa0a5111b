// Package sets is what operators see and do of sets of entities: the extension of package stage. It knows
// sets by their metadata alone, so that it works without the code of their app.
package sets

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/records"
	"github.com/runnel-go/runnel/internal/stage"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/words"
)

// Kind is the kind of the streams of sets.
const Kind = "set"

// New returns the extension. Gather adds what this process counts; it may be nil.
func New(gather func(add func(set, stage string, visits map[string]int64, calls int64, spent time.Duration))) *extension.Extension {
	return &extension.Extension{
		Name: "stage", Usage: "look after sets of entities and their stages",
		Present: func(ctx context.Context, c *store.Client) (bool, error) {
			all, err := load(ctx, c, "")
			return len(all) > 0, err
		},
		Commands: commands(), Targets: targets, Findings: findings, Status: status,
		Metrics: metrics, Gather: gatherer(gather),
	}
}

// A set is one set of an app, as its metadata has it.
type set struct {
	name  string
	meta  store.Meta
	calls *stage.Set
	at    *records.Decoder
}

// load returns the sets of an app, or one of them.
func load(ctx context.Context, c *store.Client, name string) (all []*set, err error) {
	names := []string{name}
	if name == "" {
		if names, err = c.Streams(ctx); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		meta, there, err := c.LoadMeta(ctx, name)
		if err != nil {
			return nil, err
		}
		if there && meta.Kind == Kind {
			all = append(all, &set{name, meta, stage.New(c, name, false, meta.Parts...), records.NewDecoder(name, meta, nil)})
		}
	}
	return all, nil
}

// one returns a set, or an error that lists those that there are.
func one(ctx context.Context, c *store.Client, name string) (*set, error) {
	all, err := load(ctx, c, "")
	var names []string
	for _, s := range all {
		if s.name == name {
			return s, nil
		}
		names = append(names, s.name)
	}
	if err == nil {
		err = fmt.Errorf("no set %q; there are %s", name, cmp.Or(strings.Join(names, ", "), "none"))
	}
	return nil, err
}

// stage returns a stage of the set, or an error that lists those that there are.
func (s *set) stage(name string) error {
	if slices.Contains(s.meta.Parts, name) {
		return nil
	}
	return fmt.Errorf("set %s has no stage %q; it has %s", s.name, name, strings.Join(s.meta.Parts, ", "))
}

// partition returns the partition of an ID.
func (s *set) partition(id string) (int, error) {
	n, known := s.at.PartitionOf(id)
	if !known {
		return 0, fmt.Errorf("set %s has the partitioner %q, which only the app knows: use the app's own binary", s.name, s.meta.Partitioner)
	}
	return n, nil
}

// A StageState is what waits, runs and failed of one stage, in all partitions.
type StageState struct {
	Stage   string `json:"stage"`
	Waiting int64  `json:"waiting"`
	Due     int64  `json:"due"`  // of these
	Late    int64  `json:"late"` // ms since the first has been due
	Dead    int64  `json:"dead"`
	Held    string `json:"held"` // the rule that holds it back, "" for none
}

// A State is what a set has.
type State struct {
	Set      string       `json:"set"`
	Entities int64        `json:"entities"`
	Running  int64        `json:"running"`
	Failed   int64        `json:"failed"`  // failures in all, dead ones too
	Touches  int64        `json:"touches"` // that wait
	Late     int64        `json:"late"`    // ms since the first touch has been due
	Stages   []StageState `json:"stages"`
}

// look looks at all partitions of a set.
func (s *set) look(ctx context.Context, c *store.Client) (*State, error) {
	looks := make([]*stage.Look, s.meta.Partitions)
	for n := range looks {
		looks[n] = &stage.Look{Partition: n}
	}
	s.calls.Look(ctx, looks...)
	out := &State{Set: s.name}
	for _, name := range s.meta.Parts {
		out.Stages = append(out.Stages, StageState{Stage: name})
	}
	for _, l := range looks {
		if l.Err != nil {
			return nil, fmt.Errorf("set %s partition %d: %w", s.name, l.Partition, l.Err)
		}
		out.Entities, out.Running, out.Failed = out.Entities+l.Entities, out.Running+l.Running, out.Failed+l.Failing
		out.Touches, out.Late = out.Touches+l.Queues[0].Visits, max(out.Late, l.Queues[0].Late.Milliseconds())
		for i, q := range l.Queues[1:] {
			one := &out.Stages[i]
			one.Waiting, one.Due, one.Dead = one.Waiting+q.Visits, one.Due+q.Due, one.Dead+q.Dead
			one.Late = max(one.Late, q.Late.Milliseconds())
		}
	}
	return out, s.held(ctx, c, out)
}

// held names the rules that hold stages back.
func (s *set) held(ctx context.Context, c *store.Client, out *State) error {
	set, now, err := c.Rules(ctx)
	if err != nil {
		return err
	}
	for i := range out.Stages {
		for _, name := range []string{out.Stages[i].Stage, stage.Processor} {
			for n := range s.meta.Partitions {
				if by := set.Holding(s.name, name, n, now); len(by) > 0 {
					out.Stages[i].Held = by[0].Kind
				}
			}
		}
	}
	return nil
}

// states looks at all sets, or at one.
func states(ctx context.Context, c *store.Client, name string) (out []*State, err error) {
	all, err := load(ctx, c, name)
	for _, s := range all {
		state, err := s.look(ctx, c)
		if err != nil {
			return nil, err
		}
		out = append(out, state)
	}
	return out, err
}

// findings are dead visits, and stages that are late.
func findings(ctx context.Context, c *store.Client, limits inspect.Limits) (found []inspect.Finding, err error) {
	all, err := states(ctx, c, "")
	for _, s := range all {
		for _, one := range s.Stages {
			if limits.Dead != nil && one.Dead > *limits.Dead {
				found = append(found, inspect.Finding{
					Stream: s.Set, Processor: one.Stage, What: "dead visits", Value: one.Dead, Limit: *limits.Dead,
					Text: fmt.Sprintf("%s/%s: %s; see dead ls %s/%s", s.Set, one.Stage, words.Plural(one.Dead, "dead visit"), s.Set, one.Stage),
				})
			}
			if late := time.Duration(one.Late) * time.Millisecond; limits.Age != nil && late > *limits.Age && one.Held == "" {
				found = append(found, inspect.Finding{
					Stream: s.Set, Processor: one.Stage, What: "late visits", Value: one.Late, Limit: limits.Age.Milliseconds(),
					Text: fmt.Sprintf("%s/%s: the first visit has been due for %s, above %s; see stage ls %s", s.Set, one.Stage, words.Short(late), words.Short(*limits.Age), s.Set),
				})
			}
		}
	}
	return found, err
}

// status is one line about all sets.
func status(ctx context.Context, c *store.Client) ([]string, error) {
	all, err := states(ctx, c, "")
	var entities, waiting, due, failed, dead int64
	for _, s := range all {
		entities, failed = entities+s.Entities, failed+s.Failed
		for _, one := range s.Stages {
			waiting, due, dead = waiting+one.Waiting, due+one.Due, dead+one.Dead
		}
	}
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return []string{fmt.Sprintf("%s with %d entities; %d visits wait, %d are due, %d failed, %d dead", words.Plural(len(all), "set"), entities, waiting, due, failed-dead, dead)}, nil
}
