package buses

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/words"
)

// findings are subscribers that are too far behind, and those to which nothing is sent any more. What is dead the core finds.
func findings(ctx context.Context, c *store.Client, limits inspect.Limits) (found []inspect.Finding, err error) {
	buses, err := load(ctx, c, "")
	if err != nil {
		return nil, err
	}
	all, err := states(ctx, buses)
	now := time.Now()
	for i := range all {
		s := &all[i]
		on, is := s.Bus+"/"+s.Subscriber, s.State
		if s.Why != "" {
			is += ": " + s.Why
		}
		add := func(what string, value, limit int64, format string, args ...any) {
			found = append(found, inspect.Finding{Stream: s.Bus, What: what, Value: value, Limit: limit, Text: on + fmt.Sprintf(format, args...)})
		}
		if age := s.age(now); limits.Age != nil && age > *limits.Age {
			add("age of queued events", age.Milliseconds(), limits.Age.Milliseconds(), ": an event has been queued for %s, above %s; it is %s: see webhook subs %s", words.Short(age), words.Short(*limits.Age), is, s.Subscriber)
		}
		if limits.Lag != nil && s.Queued > *limits.Lag {
			add("queued events", s.Queued, *limits.Lag, ": %s queued, above %d; it is %s: see webhook subs %s", words.Plural(s.Queued, "event"), *limits.Lag, is, s.Subscriber)
		}
		switch s.State {
		case stateDisabled:
			add(stateDisabled, 1, 0, " is %s, and gets nothing: mend its receiver, then resume %s", is, on)
		case stateUnreadable:
			add(stateUnreadable, 1, 0, " is %s", is)
		}
	}
	return found, err
}

// status is a line about all subscribers, and one about those that are not ok.
func status(ctx context.Context, c *store.Client) ([]string, error) {
	buses, err := load(ctx, c, "")
	if err != nil {
		return nil, err
	}
	all, err := states(ctx, buses)
	if err != nil {
		return nil, err
	}
	const most = 5 // named
	var queued, dropped, dead int64
	var bad []string
	for _, s := range all {
		queued, dropped, dead = queued+s.Queued, dropped+s.Dropped, dead+s.Dead
		if s.State != stateOK {
			bad = append(bad, s.Bus+"/"+s.Subscriber+" "+s.State)
		}
	}
	line := fmt.Sprintf("%s: %s queued, %d dropped, %d dead", words.Plural(len(all), "subscriber"), words.Plural(queued, "event"), dropped, dead)
	if now := time.Now(); len(all) > 0 && all[0].Oldest != nil {
		line += fmt.Sprintf("; the oldest %s, of %s/%s", words.Short(all[0].age(now)), all[0].Bus, all[0].Subscriber)
	}
	lines := []string{line}
	if n := len(bad) - most; n > 0 {
		bad = append(bad[:most], fmt.Sprintf("and %d more", n))
	}
	if len(bad) > 0 {
		lines = append(lines, strings.Join(bad, ", "))
	}
	return lines, nil
}
