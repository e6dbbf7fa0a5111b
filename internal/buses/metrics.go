package buses

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/words"
)

// What a process counts.
var (
	Published = counted(extension.Counter, "published_total", "Events that this process has published.", "topic")
	Delivered = counted(extension.Counter, "delivered_events_total", "Events that subscribers have answered for, each once for each subscriber.")
	Requests  = counted(extension.Counter, "requests_total", "Requests to subscribers that have ended, by the status of the answer; 0: there was none.", "code")
	Took      = counted(extension.Histogram, "request_seconds", "How long a request to a subscriber took.")
	Delay     = counted(extension.Histogram, "delay_seconds", "Time from the arrival of the oldest event of a batch to the answer that settled it.")
	Dead      = counted(extension.Counter, "dead_total", "Events that have become dead letters of subscribers.")
	Fenced    = counted(extension.Counter, "fenced_total", "Times that another owner had a delivery partition when this one stored how far subscribers are.")
	Cold      = counted(extension.Counter, "cold_reads_total", "Reads for one subscriber alone, of events that were not in memory any more.")
)

// What the app as a whole has.
var (
	queued      = stored("queued_events", "Events that wait for subscribers or are in a request, for each of them.")
	oldest      = stored("oldest_seconds", "Time since the first of these events came; 0 without one.")
	dropped     = stored("dropped_events", "Events that subscribers have missed, as full topics, lack of memory or their age had them dropped; of subscribers that there are.")
	dead        = stored("dead_events", "Events that have become dead letters of subscribers that there are.")
	subscribers = stored("subscribers", "Subscribers by state: ok, failing, waiting (likewise, for the time of the next attempt), paused, disabled or unreadable.", "state")
	queuedOf    = stored("subscriber_queued_events", "Events that wait for a subscriber or are in a request; of no one in an app with more than 1000 of them.", "subscriber")
	oldestOf    = stored("subscriber_oldest_seconds", "Time since the first of these events came; 0 without one.", "subscriber")

	metrics = []*extension.Metric{Published, Delivered, Requests, Took, Delay, Dead, Fenced, Cold, queued, oldest, dropped, dead, subscribers, queuedOf, oldestOf}
)

// counted returns a metric of a process, with the label bus before others.
func counted(kind extension.Kind, name, help string, labels ...string) *extension.Metric {
	return &extension.Metric{Name: name, Help: help, Kind: kind, Labels: append([]string{"bus"}, labels...)}
}

// stored returns a metric of the app as a whole, likewise.
func stored(name, help string, labels ...string) *extension.Metric {
	m := counted(extension.Gauge, "stored_"+name, help, labels...)
	m.OfApp = true
	return m
}

// mostSubscribers is how many subscribers of an app have series of their own.
const mostSubscribers = 1000

// gather looks at the buses of an app.
func gather(ctx context.Context, c *store.Client, add func(extension.Sample)) error {
	put := func(m *extension.Metric, v float64, labels ...string) {
		add(extension.Sample{Metric: m, Labels: labels, Value: v})
	}
	buses, err := load(ctx, c, "")
	if err != nil {
		return err
	}
	all, err := states(ctx, c, "")
	now := time.Now()
	for _, b := range buses {
		sum, in := sumOf(all, b.Name())
		put(queued, float64(sum.Queued), b.Name())
		put(oldest, sum.age(now).Seconds(), b.Name())
		put(dropped, float64(sum.Dropped), b.Name())
		put(dead, float64(sum.Dead), b.Name())
		for _, state := range allStates {
			put(subscribers, float64(in[state]), b.Name(), state)
		}
	}
	if len(all) <= mostSubscribers {
		for _, s := range all {
			put(queuedOf, float64(s.Queued), s.Bus, s.Subscriber)
			put(oldestOf, s.age(now).Seconds(), s.Bus, s.Subscriber)
		}
	}
	return err
}

// sumOf returns what subscribers of a bus, or with "" of all, have together, and how many there are by state. The first one has the oldest event.
func sumOf(all []*SubscriberState, bus string) (sum SubscriberState, in map[string]int) {
	in = map[string]int{}
	for _, s := range all {
		if bus == "" || s.Bus == bus {
			sum.Queued, sum.Dropped, sum.Dead = sum.Queued+s.Queued, sum.Dropped+s.Dropped, sum.Dead+s.Dead
			if sum.Oldest.IsZero() {
				sum.Oldest = s.Oldest
			}
			in[s.State]++
		}
	}
	return sum, in
}

// findings are subscribers that are too far behind, and those to which nothing is sent any more. What is dead the core finds.
func findings(ctx context.Context, c *store.Client, limits inspect.Limits) (found []inspect.Finding, err error) {
	all, err := states(ctx, c, "")
	now := time.Now()
	for _, s := range all {
		is := strings.TrimSuffix(s.State+": "+s.Why, ": ")
		add := func(what string, value, limit int64, text string) {
			text = fmt.Sprintf("%s/%s is %s%s; see webhook subs %s", s.Bus, s.Subscriber, is, text, s.Subscriber)
			found = append(found, inspect.Finding{Stream: s.Bus, What: what, Value: value, Limit: limit, Text: text})
		}
		if age := s.age(now); limits.Age != nil && age > *limits.Age {
			text := fmt.Sprintf(", and an event has been queued for %s, above %s", words.Short(age), words.Short(*limits.Age))
			add("age of queued events", age.Milliseconds(), limits.Age.Milliseconds(), text)
		}
		if limits.Lag != nil && s.Queued > *limits.Lag {
			add("queued events", s.Queued, *limits.Lag, fmt.Sprintf(", and has %s queued, above %d", words.Plural(s.Queued, "event"), *limits.Lag))
		}
		switch s.State {
		case stateDisabled:
			add(stateDisabled, 1, 0, ", and gets nothing: mend its receiver, then resume it")
		case stateUnreadable:
			add(stateUnreadable, 1, 0, "")
		}
	}
	return found, err
}

// status is a line about all subscribers.
func status(ctx context.Context, c *store.Client) ([]string, error) {
	all, err := states(ctx, c, "")
	sum, in := sumOf(all, "")
	line := fmt.Sprintf("%s: %s queued, %d dropped, %d dead", words.Plural(len(all), "subscriber"), words.Plural(sum.Queued, "event"), sum.Dropped, sum.Dead)
	for _, state := range allStates[1:] {
		if in[state] > 0 {
			line += fmt.Sprintf("; %d %s", in[state], state)
		}
	}
	return []string{line}, err
}
