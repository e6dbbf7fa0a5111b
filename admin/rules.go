package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/rules"
	"github.com/runnel-go/runnel/internal/store"
)

// A Scope is what a rule is about. The zero Scope is none, which is an error.
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

// String returns "app", "stream:orders", "processor:orders/printer" or
// "partition:orders/printer/3".
func (s Scope) String() string { return s.scope.String() }

// A RuleKind is what a rule does.
type RuleKind string

const (
	RulePause RuleKind = RuleKind(rules.Pause) // set by Pause
	RuleBlock RuleKind = RuleKind(rules.Block) // set by Block
)

// A Rule is a pause or a block that is in force.
type Rule struct {
	Kind     RuleKind
	Scope    Scope
	Who, Why string
	At       time.Time // when it was set, by Redis' clock
	Until    time.Time // when it ends by itself; zero: not before it is removed
}

// RuleOptions say more about a rule. A nil one is all defaults.
type RuleOptions struct {
	Who string        // default: the user and host of this process
	Why string        // shown by rules ls, status and the dashboard
	For time.Duration // after which it ends by itself; 0: when it is removed. At least a millisecond
}

// Pause holds back what the scope covers, until Resume or for a time. A second
// one for the same scope replaces the first.
func (c *Client) Pause(ctx context.Context, s Scope, opts *RuleOptions) error {
	return c.set(ctx, rules.Pause, s, opts)
}

// Resume removes the pause of exactly this scope; that there is none is no
// error. What is blocked, or paused by another scope too, goes on waiting.
func (c *Client) Resume(ctx context.Context, s Scope) error { return c.remove(ctx, rules.Pause, s) }

// Block is Pause for administrators: what is blocked does not run before Unblock,
// whatever was paused and resumed. Nothing but the rights in Redis keeps others
// from calling it.
func (c *Client) Block(ctx context.Context, s Scope, opts *RuleOptions) error {
	return c.set(ctx, rules.Block, s, opts)
}

// Unblock removes the block of exactly this scope; that there is none is no error.
func (c *Client) Unblock(ctx context.Context, s Scope) error { return c.remove(ctx, rules.Block, s) }

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
		out[i] = Rule{Kind: RuleKind(one.Kind), Scope: Scope{one.Scope}, Who: one.Who, Why: one.Why, At: one.At, Until: one.Until}
	}
	return out, nil
}

// Wait blocks until no function runs in the scope and none can begin to. The
// scope must be held back, by a rule for it or for something larger, and stay so,
// else Wait returns an error; also when ctx ends and when Redis does not answer.
// Of a worker that was cut off it waits for the locks to expire, and as long again.
func (c *Client) Wait(ctx context.Context, s Scope) error {
	if err := s.scope.Check(); err != nil {
		return err
	}
	client, err := c.app.Client()
	if err != nil {
		return err
	}
	return inspect.AwaitRules(ctx, client, s.scope, nil)
}

func (c *Client) set(ctx context.Context, kind rules.Kind, s Scope, opts *RuleOptions) error {
	var o RuleOptions
	if opts != nil {
		o = *opts
	}
	if o.For < 0 || o.For > 0 && o.For < time.Millisecond {
		return fmt.Errorf("%s of %s for %v: want at least a millisecond", kind, s, o.For)
	}
	if o.Who == "" {
		o.Who = rules.Whoami()
	}
	return c.change(s, func(c *store.Client) error {
		_, err := c.SetRule(ctx, rules.Rule{Kind: kind, Scope: s.scope, Who: o.Who, Why: o.Why}, o.For)
		return err
	})
}

func (c *Client) remove(ctx context.Context, kind rules.Kind, s Scope) error {
	return c.change(s, func(c *store.Client) error {
		_, err := c.RemoveRule(ctx, kind, s.scope)
		return err
	})
}

func (c *Client) change(s Scope, fn func(*store.Client) error) error {
	if err := s.scope.Check(); err != nil {
		return err
	}
	client, err := c.app.Client()
	if err != nil {
		return err
	}
	return fn(client)
}
