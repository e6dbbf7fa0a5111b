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

	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/records"
	"github.com/runnel-go/runnel/internal/stage"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/words"
)

// Kind is the kind of the streams of sets.
const Kind = "set"

// A Process is what the sets of the app's code do in this process. Its methods may be called concurrently.
type Process interface {
	Declares(set, stage string) bool
	Streams() ([]*appview.Stream, error) // that the app declares
	Count(add func(Counted))             // calls add for each stage
}

// New returns the extension; p is nil in a program without the app's code.
func New(p Process) *extension.Extension {
	return &extension.Extension{
		Name: "stage", Usage: "look after sets of entities and their stages",
		Present: func(ctx context.Context, c *store.Client) (bool, error) {
			all, err := load(ctx, c, "")
			return len(all) > 0, err
		},
		Commands: commands(p), Targets: targets, Findings: findings, Status: status,
		Metrics: metrics, Gather: gatherer(p), Page: page(p),
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

// one returns a set, with what the app's code knows of it, or an error that lists those that there are.
func one(ctx context.Context, c *store.Client, p Process, name string) (*set, error) {
	all, err := load(ctx, c, "")
	var names []string
	for _, s := range all {
		if s.name == name && p != nil {
			declared, err := p.Streams()
			s.at = records.NewDecoder(name, s.meta, declared)
			return s, err
		}
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
	return fmt.Errorf("set %s has no stage %q; it has %s", s.name, name, cmp.Or(strings.Join(s.meta.Parts, ", "), "none until a worker has run it"))
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
	Stage   string `json:"stage"` // "" for touches
	Waiting int64  `json:"waiting"`
	Due     int64  `json:"due"`  // of these
	Late    int64  `json:"late"` // ms since the first has been due
	Running int64  `json:"running"`
	Failing int64  `json:"failing"`
	Dead    int64  `json:"dead"`
	Held    string `json:"held"` // kind of the rule that holds it back, "" for none
}

func (s *StageState) add(c *stage.Count) {
	s.Waiting, s.Due, s.Late = s.Waiting+c.Waiting, s.Due+c.Due, max(s.Late, c.Late.Milliseconds())
	s.Running, s.Failing, s.Dead = s.Running+c.Running, s.Failing+c.Failing, s.Dead+c.Dead
}

// late is for how long the first visit has been due.
func (s *StageState) late() time.Duration { return time.Duration(s.Late) * time.Millisecond }

// A State is what a set has.
type State struct {
	Set      string       `json:"set"`
	Entities int64        `json:"entities"` // in Redis
	Slowed   int64        `json:"slowed"`   // entities that stages have changed too often
	Touches  StageState   `json:"touches"`
	Stages   []StageState `json:"stages"`
}

// all returns the touches and the stages, and what they are called.
func (s *State) all(do func(name string, one *StageState)) {
	do("(touches)", &s.Touches)
	for i := range s.Stages {
		do(s.Stages[i].Stage, &s.Stages[i])
	}
}

// look looks at all partitions of a set.
func (s *set) look(ctx context.Context, c *store.Client) (*State, error) {
	looks := make([]*stage.Look, s.meta.Partitions)
	for n := range looks {
		looks[n] = &stage.Look{Partition: n}
	}
	s.calls.Look(ctx, looks...)
	out := &State{Set: s.name, Stages: []StageState{}}
	for _, name := range s.meta.Parts {
		out.Stages = append(out.Stages, StageState{Stage: name})
	}
	for _, l := range looks {
		if l.Err != nil {
			return nil, fmt.Errorf("set %s partition %d: %w", s.name, l.Partition, l.Err)
		}
		out.Entities, out.Slowed = out.Entities+l.Entities, out.Slowed+l.Slowed
		out.Touches.add(&l.Counts[0])
		for i := range out.Stages {
			out.Stages[i].add(&l.Counts[i+1])
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
	out.all(func(_ string, one *StageState) {
		for _, name := range []string{stage.Processor, one.Stage} {
			for n := range s.meta.Partitions {
				if by := set.Holding(s.name, name, n, now); len(by) > 0 && name != "" {
					one.Held = by[0].Kind
				}
			}
		}
	})
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

// findings are dead visits, visits that are late, and entities that are slowed down.
func findings(ctx context.Context, c *store.Client, limits inspect.Limits) (found []inspect.Finding, err error) {
	all, err := states(ctx, c, "")
	for _, s := range all {
		if s.Slowed > 0 {
			found = append(found, inspect.Finding{
				Stream: s.Set, What: "slowed entities", Value: s.Slowed,
				Text: fmt.Sprintf("%s: stages change %d entities more than 100 times a minute, so these are visited later and later: do two stages undo each other? Logs of workers name the entities; see stage show %s ID", s.Set, s.Slowed, s.Set),
			})
		}
		s.all(func(name string, one *StageState) {
			if limits.Dead != nil && one.Dead > *limits.Dead {
				found = append(found, inspect.Finding{
					Stream: s.Set, Processor: one.Stage, What: "dead visits", Value: one.Dead, Limit: *limits.Dead,
					Text: fmt.Sprintf("%s/%s: %s; see dead ls %s/%s", s.Set, name, words.Plural(one.Dead, "dead visit"), s.Set, one.Stage),
				})
			}
			if limits.Age != nil && one.late() > *limits.Age && one.Held == "" {
				found = append(found, inspect.Finding{
					Stream: s.Set, Processor: one.Stage, What: "late visits", Value: one.Late, Limit: limits.Age.Milliseconds(),
					Text: fmt.Sprintf("%s/%s: the first visit has been due for %s, above %s; see stage ls %s", s.Set, name, words.Short(one.late()), words.Short(*limits.Age), s.Set),
				})
			}
		})
	}
	return found, err
}

// status is one line about all sets.
func status(ctx context.Context, c *store.Client) ([]string, error) {
	all, err := states(ctx, c, "")
	var entities int64
	var sum StageState
	for _, s := range all {
		entities += s.Entities
		for _, one := range s.Stages {
			sum.Waiting, sum.Due, sum.Failing, sum.Dead = sum.Waiting+one.Waiting, sum.Due+one.Due, sum.Failing+one.Failing, sum.Dead+one.Dead
		}
	}
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return []string{fmt.Sprintf("%s with %d entities in Redis; %s waiting, %d due, %d failed, %d dead", words.Plural(len(all), "set"), entities, words.Plural(sum.Waiting, "visit"), sum.Due, sum.Failing, sum.Dead)}, nil
}
