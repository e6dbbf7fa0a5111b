package buses

import (
	"context"
	"fmt"
	"time"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/words"
)

// all returns the subscribers of all buses of an app; see states.
func all(ctx context.Context, c *store.Client) ([]*SubscriberState, error) {
	buses, err := load(ctx, c, "")
	if err != nil {
		return nil, err
	}
	return states(ctx, buses)
}

// findings are subscribers that are too far behind, and those to which nothing is sent any more. What is dead the core finds.
func findings(ctx context.Context, c *store.Client, limits inspect.Limits) (found []inspect.Finding, err error) {
	all, err := all(ctx, c)
	now := time.Now()
	for _, s := range all {
		on, is := s.Bus+"/"+s.Subscriber, s.State
		if s.Why != "" {
			is += ": " + s.Why
		}
		add := func(what string, value, limit int64, text string) {
			found = append(found, inspect.Finding{Stream: s.Bus, What: what, Value: value, Limit: limit, Text: on + text})
		}
		more := fmt.Sprintf("; it is %s: see webhook subs %s", is, s.Subscriber)
		if age := s.age(now); limits.Age != nil && age > *limits.Age {
			text := fmt.Sprintf(": an event has been queued for %s, above %s", words.Short(age), words.Short(*limits.Age))
			add("age of queued events", age.Milliseconds(), limits.Age.Milliseconds(), text+more)
		}
		if limits.Lag != nil && s.Queued > *limits.Lag {
			add("queued events", s.Queued, *limits.Lag, fmt.Sprintf(": %s queued, above %d", words.Plural(s.Queued, "event"), *limits.Lag)+more)
		}
		switch s.State {
		case stateDisabled:
			add(stateDisabled, 1, 0, " is "+is+", and gets nothing: mend its receiver, then resume "+on)
		case stateUnreadable:
			add(stateUnreadable, 1, 0, " is "+is)
		}
	}
	return found, err
}

// status is a line about all subscribers.
func status(ctx context.Context, c *store.Client) ([]string, error) {
	all, err := all(ctx, c)
	if err != nil {
		return nil, err
	}
	sum, in := sumOf(all, "")
	line := fmt.Sprintf("%s: %s queued, %d dropped, %d dead", words.Plural(len(all), "subscriber"), words.Plural(sum.Queued, "event"), sum.Dropped, sum.Dead)
	if !sum.Oldest.IsZero() {
		line += fmt.Sprintf("; the oldest %s, of %s/%s", away(sum.Oldest), all[0].Bus, all[0].Subscriber)
	}
	for _, state := range allStates[1:] {
		if in[state] > 0 {
			line += fmt.Sprintf("; %d %s", in[state], state)
		}
	}
	return []string{line}, nil
}
