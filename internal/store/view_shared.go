package store

import (
	"context"
	"fmt"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/rules"
)

// A SharedValue is a string of Redis that belongs to no partition.
type SharedValue struct {
	There bool
	Text  string
	Left  time.Duration // remaining life; 0: it has no end, or there is no value
	Err   error         // the value cannot be read
}

// Shared is what belongs to no partition of an app, at one moment.
type Shared struct {
	Now        time.Time // by the server's clock
	Rules      rules.Set
	RulesErr   error
	Streams    []string // names, sorted
	StreamsErr error
	Values     map[string]SharedValue // by key
}

// Shared reads the app's rules, the names of its streams and the strings with these keys, in one
// round trip of three requests. It reads the rules by a plain command, for users who may only read
// them: a script needs the right to write all its keys.
func (c Viewer) Shared(ctx context.Context, keys []string) (Shared, error) {
	paused, blocked := redisconn.PlainCall(ctx, "HGETALL", c.keys.Rules()), redisconn.PlainCall(ctx, "HGETALL", c.keys.Blocks())
	all := redisconn.ScriptCall(ctx, sharedScript, append([]string{c.keys.Streams()}, keys...))
	redisconn.Pipeline(ctx, c.Retrying, []*redisconn.Call{paused, blocked, all})
	flat, err := all.Reply.Slice()
	if err == nil && len(flat) != len(keys)+2 {
		err = fmt.Errorf("reply of %d values for %d keys", len(flat), len(keys))
	}
	if err != nil {
		return Shared{}, fmt.Errorf("app %s: read %d shared keys: %w", c.keys.App, len(keys), classify(err))
	}
	ms, _ := flat[0].(int64)
	s := Shared{Now: time.UnixMilli(ms).UTC(), Values: make(map[string]SharedValue, len(keys))}
	s.Rules, s.RulesErr = RuleStore(c).parseRules(hashOf(paused.Reply), hashOf(blocked.Reply))
	names, ok := flat[1].([]any)
	if !ok {
		s.StreamsErr = MetaStore(c).streamsError(classify(redisconn.ScriptError(fmt.Sprint(flat[1]))))
	}
	for _, name := range names {
		s.Streams = append(s.Streams, fmt.Sprint(name))
	}
	s.Streams = streamNames(s.Streams)
	for i, key := range keys {
		s.Values[key] = c.parseShared(ctx, key, flat[i+2])
	}
	return s, nil
}

// parseShared names a key of a wrong type, but not metadata and memberships, whose readers do.
func (c Viewer) parseShared(ctx context.Context, key string, reply any) SharedValue {
	pair, ok := reply.([]any)
	if !ok || len(pair) != 2 {
		return SharedValue{Err: classify(c.NameWrongTypes(ctx, []string{key}, redisconn.ScriptError(fmt.Sprint(reply))))}
	}
	text, _ := pair[0].(string)
	left, _ := pair[1].(int64)
	return SharedValue{There: left != -2, Text: text, Left: time.Duration(max(left, 0)) * time.Millisecond}
}
