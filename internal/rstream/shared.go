package rstream

import (
	"context"
	"fmt"
	"slices"
	"time"

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
	Now      time.Time // by the server's clock
	Rules    rules.Set
	RulesErr error
	Streams  []string               // names, sorted
	Values   map[string]SharedValue // by key
}

// Shared reads the app's rules, the names of its streams and the strings with these
// keys, in one request.
func (c *Client) Shared(ctx context.Context, keys []string) (Shared, error) {
	flat, err := sharedScript.Run(ctx, c.ordinary, append([]string{c.keys.Rules(), c.keys.Streams()}, keys...)).Slice()
	if err == nil && len(flat) != len(keys)+3 {
		err = fmt.Errorf("reply of %d values for %d keys", len(flat), len(keys))
	}
	if err != nil {
		return Shared{}, fmt.Errorf("app %s: read %d shared keys: %w", c.keys.App, len(keys), sorted(err))
	}
	ms, _ := flat[0].(int64)
	s := Shared{Now: time.UnixMilli(ms).UTC(), Values: make(map[string]SharedValue, len(keys))}
	s.Rules, s.RulesErr = parseRules(flat[1])
	s.RulesErr = c.rulesError(s.RulesErr)
	names, _ := flat[2].([]any)
	for _, name := range names {
		s.Streams = append(s.Streams, fmt.Sprint(name))
	}
	slices.Sort(s.Streams)
	for i, key := range keys {
		s.Values[key] = parseShared(flat[i+3])
	}
	return s, nil
}

func parseRules(reply any) (rules.Set, error) {
	flat, ok := reply.([]any)
	if !ok {
		return rules.Set{}, sorted(scriptError(fmt.Sprint(reply)))
	}
	fields := make(map[string]string, len(flat)/2)
	for i := 0; i+1 < len(flat); i += 2 {
		fields[fmt.Sprint(flat[i])] = fmt.Sprint(flat[i+1])
	}
	return rules.Parse(fields)
}

func parseShared(reply any) SharedValue {
	pair, ok := reply.([]any)
	if !ok || len(pair) != 2 {
		return SharedValue{Err: sorted(scriptError(fmt.Sprint(reply)))}
	}
	text, _ := pair[0].(string)
	left, _ := pair[1].(int64)
	return SharedValue{There: left != -2, Text: text, Left: time.Duration(max(left, 0)) * time.Millisecond}
}
