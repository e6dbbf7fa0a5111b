package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/runnel-go/runnel/internal/rstream"
	"github.com/runnel-go/runnel/internal/rules"
)

// A RuleState is a rule that is in force.
type RuleState struct {
	Kind  string     `json:"kind"`  // pause or block
	Scope string     `json:"scope"` // app, stream:…, processor:…/…, partition:…/…/…
	Who   string     `json:"who"`
	Why   string     `json:"why"`
	At    time.Time  `json:"at"`
	Until *time.Time `json:"until,omitempty"`
}

// Rules are the rules of an app that are in force.
func Rules(ctx context.Context, c *rstream.Client) ([]rules.Rule, error) {
	set, now, err := c.Rules(ctx)
	return set.InForce(now), err
}

// StateOf is a rule as JSON shows it.
func StateOf(r rules.Rule) RuleState {
	s := RuleState{Kind: string(r.Kind), Scope: r.Scope.String(), Who: r.Who, Why: r.Why, At: r.At}
	if !r.Until.IsZero() {
		s.Until = &r.Until
	}
	return s
}

// hold fills in what rules hold back. What cannot be read is told, and does not
// keep the rest from being seen.
func (a *AppState) hold(set rules.Set, now time.Time, err error) {
	a.Rules = []RuleState{}
	if err != nil {
		a.RulesErr = err.Error()
		return
	}
	for _, r := range set.InForce(now) {
		a.Rules = append(a.Rules, StateOf(r))
	}
	for _, s := range a.Streams {
		for i := range s.Processors {
			p := &s.Processors[i]
			for n := range p.Partitions {
				if by := set.Holding(s.Stream, p.Processor, n, now); len(by) > 0 {
					p.Partitions[n].Held = string(by[0].Kind)
				}
			}
			p.Totals = Sum(p.Partitions)
		}
	}
}

const (
	firstPoll = 20 * time.Millisecond
	lastPoll  = 500 * time.Millisecond

	// unknownExpiry stands for that of an executor that is no member.
	unknownExpiry = 10 * time.Second
)

// ErrNotHeld is in the chain of what AwaitRules returns where no rule holds the
// scope back.
var ErrNotHeld = errors.New("nothing holds it back")

// AwaitRules waits until no function runs in a scope that rules hold back, and
// none can begin to. waiting, if not nil, is called with what it waits for, each
// time it looks. It returns an error when ctx ends, when Redis does not answer,
// and, with ErrNotHeld, when no rule in force covers the scope, or none any more.
func AwaitRules(ctx context.Context, c *rstream.Client, scope rules.Scope, waiting func([]rstream.Holdout)) error {
	var known []rstream.Holdout
	silent := silence{}
	for pause := firstPoll; ; pause = min(2*pause, lastPoll) {
		set, now, err := c.Rules(ctx)
		if err != nil {
			return err
		}
		if !holds(set.InForce(now), scope) {
			return fmt.Errorf("%s: %w", scope, ErrNotHeld)
		}
		inEffect := func(g rules.Generations) bool { return set.InEffect(g, scope, now) }
		if known, err = holdoutsOf(ctx, c, scope, inEffect, known); err != nil {
			return err
		}
		holdouts := silent.without(known, time.Now())
		if len(holdouts) == 0 {
			return nil
		}
		if waiting != nil {
			waiting(holdouts)
		}
		timer := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// silence is since when executors have been silent, by the clock of this process: that of
// the server may have been set, which ends heartbeats and locks at once and no lease.
type silence map[string]time.Time

// without returns the holdouts but for those whose lease is surely over.
func (s silence) without(all []rstream.Holdout, now time.Time) []rstream.Holdout {
	var out []rstream.Holdout
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

func holds(in []rules.Rule, scope rules.Scope) bool {
	for _, r := range in {
		if r.Scope.Contains(scope) {
			return true
		}
	}
	return false
}

// holdoutsOf looks at every processor that the scope has to do with.
func holdoutsOf(ctx context.Context, c *rstream.Client, scope rules.Scope, inEffect func(rules.Generations) bool, earlier []rstream.Holdout) ([]rstream.Holdout, error) {
	streams := []string{scope.StreamName()}
	var err error
	if streams[0] == "" {
		if streams, err = c.Streams(ctx); err != nil {
			return nil, err
		}
	}
	var all []rstream.Holdout
	for _, stream := range streams {
		m, ok, err := c.LoadMeta(ctx, stream)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
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
			holdouts, err := c.Holdouts(ctx, stream, name, partitions, inEffect, earlier)
			if err != nil {
				return nil, err
			}
			all = append(all, holdouts...)
		}
	}
	return all, nil
}
