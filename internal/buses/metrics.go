package buses

import (
	"context"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/store"
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

// gatherer returns the Gather of the extension.
func gatherer(count *extension.Counters) func(context.Context, *store.Client, bool, func(extension.Sample)) error {
	return func(ctx context.Context, c *store.Client, ofApp bool, add func(extension.Sample)) error {
		if ofApp {
			return gatherStored(ctx, c, add)
		}
		count.Each(add)
		return nil
	}
}

// mostSubscribers is how many subscribers of an app have series of their own.
const mostSubscribers = 1000

// gatherStored looks at the buses of an app.
func gatherStored(ctx context.Context, c *store.Client, add func(extension.Sample)) error {
	buses, err := load(ctx, c, "")
	if err != nil {
		return err
	}
	all, err := states(ctx, buses)
	now := time.Now()
	put := func(m *extension.Metric, v float64, labels ...string) {
		add(extension.Sample{Metric: m, Labels: labels, Value: v})
	}
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
