package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/rules"
	"github.com/runnel-go/runnel/internal/store"
)

// A RuleState is a rule in force, or a quarantine listed beside rules.
type RuleState struct {
	Kind  string     `json:"kind"`  // pause, block or KindQuarantine
	Scope string     `json:"scope"` // app, stream:…, processor:…/…, partition:…/…/…
	Who   string     `json:"who"`   // of a quarantine: the worker that stopped
	Why   string     `json:"why"`
	At    time.Time  `json:"at"`
	Until *time.Time `json:"until,omitempty"`

	Event   string `json:"event,omitempty"`   // of a quarantine: partition/entry ID
	Absent  bool   `json:"absent,omitempty"`  // its stream or processor does not exist
	Command string `json:"command,omitempty"` // that ends it, without the program's name
}

// KindQuarantine is the kind of a quarantine among rules.
const KindQuarantine = "quarantine"

func Rules(ctx context.Context, c *store.Client) ([]rules.Rule, error) {
	set, now, err := c.Rules(ctx)
	return set.InForce(now), err
}

// StateOf returns the JSON form of a rule.
func StateOf(r rules.Rule) RuleState {
	s := RuleState{Kind: string(r.Kind), Scope: r.Scope.String(), Who: r.Who, Why: r.Why, At: r.At}
	if !r.Until.IsZero() {
		s.Until = &r.Until
	}
	return s
}

// Stops returns everything that stops partitions: the rules in force, each marked if its stream or
// processor is absent, and the quarantines; each with the command that ends it.
func (a *AppState) Stops() []RuleState {
	out := []RuleState{}
	for _, r := range a.Rules {
		if scope, err := rules.ParseScope(r.Scope); err == nil {
			r.Absent = a.lacks(scope) && !slices.Contains(a.Parts, r.Scope)
			r.Command = commandThatEnds(r.Kind, scope)
		}
		out = append(out, r)
	}
	for _, p := range a.Processors() {
		out = append(out, p.quarantines()...)
	}
	return out
}

// lacks reports whether an app, looked at as a whole, has no such stream or processor.
func (a *AppState) lacks(scope rules.Scope) bool {
	if _, unreadable := a.Unreadable[scope.StreamName()]; unreadable || scope == rules.App() {
		return false
	}
	for i := range a.Streams {
		if s := &a.Streams[i]; s.Stream == scope.StreamName() {
			return scope.ProcessorName() != "" && !slices.ContainsFunc(s.Processors, func(p ProcessorState) bool { return p.Processor == scope.ProcessorName() })
		}
	}
	return true
}

func (p *ProcessorState) quarantines() (out []RuleState) {
	for _, s := range p.Partitions {
		if q := s.Quarantine; q != nil {
			scope := rules.Partition(p.Stream, p.Processor, s.Partition)
			out = append(out, RuleState{Kind: KindQuarantine, Scope: scope.String(), Who: q.Worker, Why: q.Reason, At: q.At, Event: q.Event,
				Command: commandThatEnds(KindQuarantine, scope)})
		}
	}
	return out
}

func commandThatEnds(kind string, scope rules.Scope) string {
	verb, flags := map[string]string{rules.Pause: "resume", rules.Block: "unblock", KindQuarantine: "quarantine release"}[kind], ""
	what := scope.StreamName()
	if name := scope.ProcessorName(); name != "" {
		what += "/" + name
	}
	if scope == rules.App() {
		what = "--all"
	}
	if n, one := scope.PartitionNumber(); one {
		flags = fmt.Sprintf(" --partition %d", n)
	}
	if kind == rules.Block {
		flags += " --as-admin"
	}
	return verb + " " + what + flags
}

// hold marks the partitions that rules hold back, and reports an error in reading the rules.
func (a *AppState) hold(set rules.Set, now time.Time, err error) {
	a.Rules = []RuleState{}
	if err != nil {
		a.RulesErr = err.Error()
		return
	}
	for _, r := range set.InForce(now) {
		a.Rules = append(a.Rules, StateOf(r))
	}
	for _, p := range a.Processors() {
		for n := range p.Partitions {
			if by := set.Holding(p.Stream, p.Processor, n, now); len(by) > 0 {
				p.Partitions[n].Held = string(by[0].Kind)
			}
		}
		p.sum()
	}
}

const (
	firstPoll = 20 * time.Millisecond
	lastPoll  = 500 * time.Millisecond

	// unknownExpiry stands for the lease of an executor that is no member.
	unknownExpiry = 10 * time.Second
)

// ErrNotHeld is what AwaitRules wraps if no rule holds the scope back.
var ErrNotHeld = errors.New("nothing holds it back")

// AwaitRules blocks until no function runs in a scope that rules hold back, and none can start.
// waiting, if not nil, is called with the remaining holdouts at each look. AwaitRules returns an
// error when ctx ends, when Redis does not answer, and, with ErrNotHeld, once no rule in force
// covers the scope. For a part of an extension, runs is the processor whose executors run it; else it
// is "".
func AwaitRules(ctx context.Context, c *store.Client, scope rules.Scope, runs string, waiting func([]store.NotPausedYet)) error {
	var known []store.NotPausedYet
	silent := silence{}
	for pause := firstPoll; ; pause = min(2*pause, lastPoll) {
		set, now, err := c.Rules(ctx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(set.InForce(now), func(r rules.Rule) bool { return r.Scope.Contains(scope) }) {
			return fmt.Errorf("%s: %w", scope, ErrNotHeld)
		}
		inEffect := func(g rules.Generations) bool { return set.InEffect(g, scope, now) }
		if known, err = holdoutsOf(ctx, c, scope, runs, now, inEffect, known); err != nil {
			return err
		}
		holdouts := silent.without(known, time.Now())
		if len(holdouts) == 0 {
			return nil
		}
		if waiting != nil {
			waiting(holdouts)
		}
		if !monotime.Sleep(ctx, pause/2+rand.N(pause)) {
			return ctx.Err()
		}
	}
}

// silence is since when each executor has been silent, by the clock of this process. If the
// server's clock is set forward, heartbeats and locks end at once, but no lease does.
type silence map[string]time.Time

// without returns the holdouts whose lease may still hold.
func (s silence) without(all []store.NotPausedYet, now time.Time) []store.NotPausedYet {
	var out []store.NotPausedYet
	for _, h := range all {
		if !h.Silent {
			delete(s, h.Executor)
		} else if since, known := s[h.Executor]; !known {
			s[h.Executor] = now
		} else if now.Sub(since) >= cmp.Or(h.Expiry, unknownExpiry) {
			continue
		}
		out = append(out, h)
	}
	return out
}

// holdoutsOf returns the holdouts of every processor that the scope includes, and that runs it.
func holdoutsOf(ctx context.Context, c *store.Client, scope rules.Scope, runs string, now time.Time, inEffect func(rules.Generations) bool, earlier []store.NotPausedYet) ([]store.NotPausedYet, error) {
	streams := []string{scope.StreamName()}
	var err error
	if streams[0] == "" {
		if streams, err = c.Streams(ctx); err != nil {
			return nil, err
		}
	}
	var all []store.NotPausedYet
	for _, stream := range streams {
		m, _, err := c.LoadMeta(ctx, stream)
		if err != nil {
			return nil, err
		}
		if name := scope.ProcessorName(); name != "" {
			m.Processors = []string{name} // its members run on even if Redis has forgotten the metadata
		}
		for _, name := range m.Processors {
			if !scope.Includes(stream, name) {
				continue
			}
			var partitions []int
			for n := range m.Partitions {
				if scope.Covers(stream, name, n) {
					partitions = append(partitions, n)
				}
			}
			holdouts, err := c.NotPausedYet(ctx, stream, cmp.Or(runs, name), partitions, now, inEffect, earlier)
			if err != nil {
				return nil, err
			}
			all = append(all, holdouts...)
		}
	}
	return all, nil
}
