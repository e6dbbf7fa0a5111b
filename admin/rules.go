package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/rules"
	"github.com/runnel-go/runnel/internal/store"
)

// A Scope is the part of an app that a rule covers. The zero Scope is an error.
type Scope struct{ scope rules.Scope }

// AppScope returns the scope of everything in the app.
func AppScope() Scope { return Scope{rules.App()} }

// StreamScope returns the scope of all processors of a stream.
func StreamScope(stream string) Scope { return Scope{rules.Stream(stream)} }

// ProcessorScope returns the scope of a processor.
func ProcessorScope(stream, processor string) Scope {
	return Scope{rules.Processor(stream, processor)}
}

// PartitionScope returns the scope of one partition of a processor.
func PartitionScope(stream, processor string, partition int) Scope {
	return Scope{rules.Partition(stream, processor, partition)}
}

// Check returns an error if the scope is zero, or a name in it is not valid.
func (s Scope) Check() error { return s.scope.Check() }

// String returns "app", "stream:orders", "processor:orders/printer" or
// "partition:orders/printer/3".
func (s Scope) String() string { return s.scope.String() }

// ParseScope is the inverse of String.
func ParseScope(text string) (Scope, error) {
	s, err := rules.ParseScope(text)
	return Scope{s}, err
}

// A RuleKind is the kind of a rule: a pause or a block.
type RuleKind string

const (
	RulePause RuleKind = "pause" // set by Pause
	RuleBlock RuleKind = "block" // set by Block
)

// A Rule is a pause or a block that is in force.
type Rule struct {
	Kind     RuleKind
	Scope    Scope
	Who, Why string
	At       time.Time // when it was set, by Redis' clock
	Until    time.Time // when the rule ends by itself; zero: when it is removed
}

// String returns the rule as a sentence: kind, scope, author, beginning, end, and reason.
func (r Rule) String() string {
	return rules.Rule{Kind: string(r.Kind), Scope: r.Scope.scope, Who: r.Who, Why: r.Why, At: r.At, Until: r.Until}.String()
}

// RuleOptions configure a rule. nil is all defaults.
type RuleOptions struct {
	Who string        // default: the user and host of this process
	Why string        // shown by rules ls, status and the dashboard
	For time.Duration // the rule ends by itself after this time, at least a millisecond; 0: when it is removed
}

// A RuleChange is the result of a change of rules.
type RuleChange struct {
	Rule             // in force, or removed: then it has only kind, scope and time
	Was        bool  // there was such a rule before
	Generation int64 // of the rules after the change; it grows with every change
}

// Removed returns the result of a removal as a sentence.
func (r RuleChange) Removed() string {
	if r.Was {
		return fmt.Sprintf("the %s of %s is removed", r.Kind, r.Scope)
	}
	return fmt.Sprintf("there was no %s of %s", r.Kind, r.Scope)
}

// Pause stops the processing in the scope, until Resume or for a time. A second Pause of the same
// scope replaces the first.
func (c *Client) Pause(ctx context.Context, s Scope, opts *RuleOptions) error {
	_, err := c.SetRule(ctx, RulePause, s, opts)
	return err
}

// Resume removes the pause of exactly this scope, if there is one. Partitions that are blocked, or
// paused by another scope too, stay stopped.
func (c *Client) Resume(ctx context.Context, s Scope) error {
	_, err := c.RemoveRule(ctx, RulePause, s)
	return err
}

// Block is Pause for administrators: a blocked scope does not run before Unblock, whatever is
// resumed. Only the rights in Redis restrict its callers.
func (c *Client) Block(ctx context.Context, s Scope, opts *RuleOptions) error {
	_, err := c.SetRule(ctx, RuleBlock, s, opts)
	return err
}

// Unblock removes the block of exactly this scope, if there is one.
func (c *Client) Unblock(ctx context.Context, s Scope) error {
	_, err := c.RemoveRule(ctx, RuleBlock, s)
	return err
}

// Rules returns the rules in force, blocks first.
func (c *Client) Rules(ctx context.Context) ([]Rule, error) {
	client, err := c.app.Client()
	if err != nil {
		return nil, err
	}
	in, err := inspect.Rules(ctx, client)
	if err != nil {
		return nil, err
	}
	out := make([]Rule, len(in))
	for i, one := range in {
		out[i] = ruleOf(one)
	}
	return out, nil
}

// RulesAbout returns the rules in force that cover a part of the scope, or all of it.
func (c *Client) RulesAbout(ctx context.Context, s Scope) ([]Rule, error) {
	all, err := c.Rules(ctx)
	return slices.DeleteFunc(all, func(r Rule) bool { return !r.Scope.scope.Contains(s.scope) && !s.scope.Contains(r.Scope.scope) }), err
}

// CheckScope returns an error if a rule for the scope would cover nothing: a *NotFoundError if its
// stream or processor does not exist, though it may be created later.
func (c *Client) CheckScope(ctx context.Context, s Scope) error {
	stream := s.scope.StreamName()
	if stream == "" {
		return nil
	}
	client, m, err := c.meta(ctx, stream)
	switch n, one := s.scope.PartitionNumber(); {
	case err != nil:
		return err
	case one && n >= m.Partitions:
		return fmt.Errorf("stream %s has partitions 0 to %d, not %d", stream, m.Partitions-1, n)
	}
	_, err = c.partOf(ctx, client, s, m)
	return err
}

// partOf returns the part of an extension that a scope names, nil for a scope of the core, and a
// *NotFoundError if it names neither a processor nor a part.
func (c *core) partOf(ctx context.Context, client *store.Client, s Scope, m store.Meta) (*extension.Target, error) {
	stream, name := s.scope.StreamName(), s.scope.ProcessorName()
	if name == "" || slices.Contains(m.Processors, name) {
		return nil, nil
	}
	part, err := extension.FindTarget(ctx, c.of, client, stream, name)
	if missing := (*extension.NotTargetError)(nil); errors.As(err, &missing) && !store.InternalKind(m.Kind) {
		m.Processors = append(slices.Clone(m.Processors), missing.There...)
	} else if err != nil || part != nil {
		return part, err
	}
	return nil, c.noProcessor(client, stream, name, m)
}

// Wait blocks until no function runs in the scope and none can start. A rule for all of the scope
// must be in force throughout: otherwise, when ctx ends, and when Redis does not answer, Wait
// returns an error. For a worker that is cut off it waits until the worker's locks expire, and as
// long again; where another one has taken a partition over from it, until a lease after that.
func (c *Client) Wait(ctx context.Context, s Scope) error {
	client, err := c.scoped(s)
	if err != nil {
		return err
	}
	if part, err := c.ownPauses(ctx, client, RulePause, s); err != nil || part != nil {
		return c.awaitPart(ctx, part, err)
	}
	runs, err := c.runs(ctx, client, s)
	if err != nil {
		return err
	}
	err = inspect.AwaitRules(ctx, client, s.scope, runs, func(holdouts []store.NotPausedYet) {
		names := make([]string, len(holdouts))
		for i, h := range holdouts {
			names[i] = h.String()
		}
		c.tell("waiting for "+strings.Join(names, ", "), 0, 0)
	})
	if errors.Is(err, inspect.ErrNotHeld) {
		return fmt.Errorf("%w any more: the rule ended, or was removed, before everything had stopped", err)
	}
	return err
}

// idlePoll is how often Wait asks a part that keeps its own pauses.
const idlePoll = 100 * time.Millisecond

// awaitPart waits until nothing of a part runs.
func (c *core) awaitPart(ctx context.Context, part *extension.Target, err error) error {
	for err == nil {
		var n int
		if n, err = part.Running(ctx); n == 0 {
			break
		}
		c.tell(fmt.Sprintf("waiting for %d %ss", n, part.Noun), 0, 0)
		if !monotime.Sleep(ctx, idlePoll) {
			err = ctx.Err()
		}
	}
	return err
}

// runs returns the processor that runs the part of an extension that a scope names, "" for a scope of
// the core.
func (c *core) runs(ctx context.Context, client *store.Client, s Scope) (string, error) {
	if s.scope.ProcessorName() == "" {
		return "", nil
	}
	m, _, err := client.LoadMeta(ctx, s.scope.StreamName())
	if err != nil {
		return "", err
	}
	part, err := c.partOf(ctx, client, s, m)
	if errors.As(err, new(*NotFoundError)) {
		return "", nil // its members run on even if Redis has forgotten the metadata
	}
	if err != nil || part == nil {
		return "", err
	}
	return part.Processor, nil
}

// SetRule is Pause or Block; it returns the change.
func (c *Client) SetRule(ctx context.Context, kind RuleKind, s Scope, opts *RuleOptions) (RuleChange, error) {
	var o RuleOptions
	if opts != nil {
		o = *opts
	}
	if o.For < 0 || o.For > 0 && o.For < time.Millisecond {
		return RuleChange{}, fmt.Errorf("%s of %s for %v: want at least a millisecond", kind, s, o.For)
	}
	o.Who = cmp.Or(o.Who, rules.Whoami())
	client, err := c.scoped(s)
	if err != nil {
		return RuleChange{}, err
	}
	r := rules.Rule{Kind: string(kind), Scope: s.scope, Who: o.Who, Why: o.Why}
	if part, err := c.ownPauses(ctx, client, kind, s); err != nil || part != nil {
		if err == nil {
			r.At = time.Now()
			if o.For > 0 {
				r.Until = r.At.Add(o.For)
			}
			_, err = part.Pause(ctx, extension.Pause{Who: o.Who, Why: o.Why, For: o.For})
		}
		return RuleChange{Rule: ruleOf(r)}, err
	}
	change, err := client.SetRule(ctx, r, o.For)
	if err != nil {
		return RuleChange{}, err
	}
	r.At, r.Until = change.At, change.Until
	return RuleChange{ruleOf(r), change.Was, change.Generation}, nil
}

// RemoveRule is Resume or Unblock; it returns the change.
func (c *Client) RemoveRule(ctx context.Context, kind RuleKind, s Scope) (RuleChange, error) {
	client, err := c.scoped(s)
	if err != nil {
		return RuleChange{}, err
	}
	if part, err := c.ownPauses(ctx, client, kind, s); err != nil || part != nil {
		if err == nil {
			_, err = part.Resume(ctx, rules.Whoami())
		}
		return RuleChange{Rule: ruleOf(rules.Rule{Kind: string(kind), Scope: s.scope, At: time.Now()}), Was: true}, err
	}
	change, err := client.RemoveRule(ctx, string(kind), s.scope)
	if err != nil {
		return RuleChange{}, err
	}
	return RuleChange{ruleOf(rules.Rule{Kind: string(kind), Scope: s.scope, At: change.At}), change.Was, change.Generation}, nil
}

// ownPauses returns the part that a scope names if it keeps its own pauses, such as a job; nil for any other scope.
func (c *core) ownPauses(ctx context.Context, client *store.Client, kind RuleKind, s Scope) (*extension.Target, error) {
	if _, one := s.scope.PartitionNumber(); one || s.scope.ProcessorName() == "" {
		return nil, nil
	}
	m, there, err := client.LoadMeta(ctx, s.scope.StreamName())
	if err != nil || !there || !store.InternalKind(m.Kind) {
		return nil, err
	}
	part, err := c.partOf(ctx, client, s, m)
	switch {
	case errors.As(err, new(*NotFoundError)) || errors.As(err, new(*extension.NotTargetError)):
		return nil, nil // held back from its start, if anything
	case err != nil || part == nil || part.Pause == nil:
		return nil, err
	case kind == RuleBlock:
		return nil, fmt.Errorf("%s keeps its own pauses, and cannot be blocked: block stream:%s", s, s.scope.StreamName())
	}
	return part, nil
}

func (c *core) scoped(s Scope) (*store.Client, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	return c.app.Client()
}

func ruleOf(r rules.Rule) Rule {
	return Rule{Kind: RuleKind(r.Kind), Scope: Scope{r.Scope}, Who: r.Who, Why: r.Why, At: r.At, Until: r.Until}
}
