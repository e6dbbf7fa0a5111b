package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/rules"
)

// A RuleStore holds the pauses and blocks of the app. Workers and inspect read it; admin,
// cli and web change it.
type RuleStore struct{ *core }

// Rules returns what is paused and blocked in the app, and the server's time before the read. It
// uses plain commands, so that a user who may only read the rules can run workers. Pauses are read
// first: a worker that has read the copy of a block there also has the block.
func (c RuleStore) Rules(ctx context.Context) (rules.Set, time.Time, error) {
	pipe := c.Retrying.Pipeline()
	now, paused, blocked := pipe.Time(ctx), pipe.HGetAll(ctx, c.keys.Rules()), pipe.HGetAll(ctx, c.keys.Blocks())
	_, _ = pipe.Exec(ctx) // each has its own error
	set, err := c.parseRules(paused.Result, blocked.Result)
	if err == nil {
		err = c.rulesError(c.keys.Rules(), classify(now.Err()))
	}
	return set, now.Val().UTC(), err
}

// parseRules reads the two hashes of the rules.
func (c RuleStore) parseRules(paused, blocked func() (map[string]string, error)) (set rules.Set, err error) {
	fields, err := paused()
	if err = classify(err); err == nil {
		set, err = rules.Parse(fields)
	}
	if err != nil {
		return rules.Set{}, c.rulesError(c.keys.Rules(), err)
	}
	fields, err = blocked()
	if err = classify(err); err == nil {
		set, err = set.WithBlocks(fields)
	}
	if err != nil {
		return rules.Set{}, c.rulesError(c.keys.Blocks(), err)
	}
	return set, nil
}

// hashOf reads a hash, in either version of the protocol.
func hashOf(reply *redis.Cmd) func() (map[string]string, error) {
	return func() (map[string]string, error) {
		stored, err := reply.Result()
		fields := map[string]string{}
		switch stored := stored.(type) {
		case map[any]any:
			for name, value := range stored {
				fields[fmt.Sprint(name)] = fmt.Sprint(value)
			}
		case []any:
			for i := 0; i+1 < len(stored); i += 2 {
				fields[fmt.Sprint(stored[i])] = fmt.Sprint(stored[i+1])
			}
		}
		return fields, err
	}
}

// A RuleChange is the result of a change of the rules.
type RuleChange struct {
	Generation int64     // of the rules after it
	Was        bool      // the rule was there before
	At, Until  time.Time // by the server's clock; Until is zero where the rule does not end by itself
}

// SetRule sets a rule, in place of one of the same kind and scope, for a time or, with 0, until it
// is removed. It records Who and Why of the rule; At and Until are the server's. It retries while
// its outcome is unknown. A block is copied among the pauses if the user may write there, since
// workers of earlier releases read nothing else.
func (c RuleStore) SetRule(ctx context.Context, r rules.Rule, lasts time.Duration) (RuleChange, error) {
	ms := int64(0)
	if lasts > 0 {
		ms = milliseconds(lasts)
	}
	change, err := c.changeRule(ctx, c.ruleKey(r.Kind), r, "set", ms)
	if err == nil && r.Kind == rules.Block {
		if _, err = c.changeRule(ctx, c.keys.Rules(), r, "copy", ms); redisconn.Denied(err) {
			err = nil
		}
	}
	return change, err
}

// RemoveRule removes the rule of a kind and scope; a missing one is no error. It also removes a
// block from the pauses, where earlier releases set it. It retries while its outcome is unknown.
func (c RuleStore) RemoveRule(ctx context.Context, kind string, scope rules.Scope) (RuleChange, error) {
	r := rules.Rule{Kind: kind, Scope: scope}
	change, err := c.changeRule(ctx, c.ruleKey(kind), r, "remove", 0)
	if err != nil || kind == rules.Pause {
		return change, err
	}
	value, err := c.Retrying.HGet(ctx, c.keys.Rules(), r.Field()).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return change, nil
	case err != nil:
		return RuleChange{}, c.rulesError(c.keys.Rules(), classify(err))
	}
	_, err = c.changeRule(ctx, c.keys.Rules(), r, "remove", 0)
	if rules.IsCopy(value) && redisconn.Denied(err) {
		err = nil
	}
	change.Was = change.Was || !rules.IsCopy(value)
	return change, err
}

// ForgetRules removes the rules of a scope that is gone, and of all that it contains, and returns
// how many there were. It may be repeated.
func (c RuleStore) ForgetRules(ctx context.Context, scope rules.Scope) (int, error) {
	set, _, err := c.Rules(ctx)
	n := 0
	for _, r := range set.Rules {
		if err == nil && scope.Contains(r.Scope) {
			_, err = c.RemoveRule(ctx, r.Kind, r.Scope)
			n++
		}
	}
	return n, err
}

func (c RuleStore) ruleKey(kind string) string {
	if kind == rules.Block {
		return c.keys.Blocks()
	}
	return c.keys.Rules()
}

func (c RuleStore) changeRule(ctx context.Context, key string, r rules.Rule, what string, ms int64) (RuleChange, error) {
	var change RuleChange
	err := persist(ctx, func() error {
		reply, err := ruleScript.Run(ctx, c.NoRetry, []string{key, c.keys.AppControl()},
			r.Field(), what, r.Who, r.Why, ms).Int64Slice()
		if err == nil && len(reply) != 4 {
			err = fmt.Errorf("reply of %d values", len(reply))
		}
		if err != nil {
			return classify(err)
		}
		// If an earlier try of unknown outcome removed it, this one cannot know.
		change = RuleChange{Generation: reply[0], Was: reply[1] == 1, At: time.UnixMilli(reply[2]).UTC()}
		if reply[3] != 0 {
			change.Until = time.UnixMilli(reply[3]).UTC()
		}
		return nil
	})
	if err != nil {
		return RuleChange{}, c.rulesError(key, fmt.Errorf("%s %s: %w", what, r.Field(), c.lackingRule(ctx, key, err)))
	}
	return change, nil
}

// lackingRule adds to an error the missing rights to change rules.
func (c RuleStore) lackingRule(ctx context.Context, key string, err error) error {
	if !redisconn.Denied(err) {
		return err
	}
	var missing []Right
	for _, k := range []string{key, c.keys.AppControl()} {
		right := keyRight(keys.Operate, "~", k, "EVAL", "return 1", 1, k)
		if tried := c.Retrying.Do(ctx, right.args...).Err(); tried != nil && refuses(right, tried) {
			missing = append(missing, right)
		}
	}
	if len(missing) == 0 {
		return err
	}
	return fmt.Errorf("%w; user %q lacks the right to write %s: let an administrator say: %s", err, c.User(), names(missing), ACL(c).Grant(missing))
}

func (c RuleStore) rulesError(key string, err error) error {
	if err == nil {
		return nil
	}
	remedy := ""
	switch {
	case errors.Is(err, rules.ErrInvalid):
		remedy = fmt.Sprintf(": look at it with HGETALL %s and remove what is odd with HDEL, then set again what is to be held", key)
	case errors.Is(err, redisconn.ErrWrongType) && !errors.As(err, new(*redisconn.WrongTypeError)):
		remedy = fmt.Sprintf(": GET %s tells whether `stream move-layout` has left it: then set RUNNEL_KEY_LAYOUT as that command has said; "+
			"else delete or rename it, and set again what is to be held", key)
	}
	if remedy != "" {
		remedy += "; " + help.UnreadableKey
	}
	return fmt.Errorf("rules of app %s (%s): %w%s", c.keys.App, key, err, remedy)
}
