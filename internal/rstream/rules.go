package rstream

import (
	"context"
	"fmt"
	"time"

	"github.com/runnel-go/runnel/internal/rules"
)

// Rules returns what is paused and blocked in the app, and the server's time,
// which it had before it read them. It uses plain commands, so that a user who
// may only read the rules can run workers.
func (c *Client) Rules(ctx context.Context) (rules.Set, time.Time, error) {
	pipe := c.ordinary.Pipeline()
	now, fields := pipe.Time(ctx), pipe.HGetAll(ctx, c.keys.Rules())
	if _, err := pipe.Exec(ctx); err != nil {
		return rules.Set{}, time.Time{}, c.rulesError(sorted(err))
	}
	set, err := rules.Parse(fields.Val())
	return set, now.Val().UTC(), c.rulesError(err)
}

// A RuleChange is what a change of the rules came to.
type RuleChange struct {
	Generation int64     // of the rules after it
	Was        bool      // the rule was there before
	At, Until  time.Time // by the server's clock; Until is zero where the rule does not end by itself
}

// SetRule sets a rule, in place of one of the same kind and scope, for a time or,
// with 0, until it is removed. Who and Why of the rule are recorded, At and Until
// are the server's. It is repeated inside while its outcome is unknown.
func (c *Client) SetRule(ctx context.Context, r rules.Rule, lasts time.Duration) (RuleChange, error) {
	ms := int64(0)
	if lasts > 0 {
		ms = milliseconds(lasts)
	}
	return c.changeRule(ctx, r, "set", ms)
}

// RemoveRule removes the rule of a kind and scope; that there is none is no error.
// It is repeated inside while its outcome is unknown.
func (c *Client) RemoveRule(ctx context.Context, kind rules.Kind, scope rules.Scope) (RuleChange, error) {
	return c.changeRule(ctx, rules.Rule{Kind: kind, Scope: scope}, "remove", 0)
}

func (c *Client) changeRule(ctx context.Context, r rules.Rule, what string, ms int64) (RuleChange, error) {
	var change RuleChange
	err := c.persist(ctx, func() error {
		reply, err := ruleScript.Run(ctx, c.once, []string{c.keys.Rules(), c.keys.AppControl()},
			r.Field(), what, r.Who, r.Why, ms).Int64Slice()
		if err == nil && len(reply) != 4 {
			err = fmt.Errorf("reply of %d values", len(reply))
		}
		if err != nil {
			return sorted(err)
		}
		// If an earlier try of unknown outcome removed it, this one cannot know.
		change = RuleChange{Generation: reply[0], Was: reply[1] == 1, At: time.UnixMilli(reply[2]).UTC()}
		if reply[3] != 0 {
			change.Until = time.UnixMilli(reply[3]).UTC()
		}
		return nil
	})
	if err != nil {
		return RuleChange{}, c.rulesError(fmt.Errorf("%s %s: %w", what, r.Field(), err))
	}
	return change, nil
}

func (c *Client) rulesError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("rules of app %s (%s): %w", c.keys.App, c.keys.Rules(), err)
}
