package buses

import (
	"context"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/store"
)

// What a process counts.
var (
	// Published has the labels bus and topic.
	Published = &extension.Metric{
		Name: "published_total", Kind: extension.Counter, Labels: []string{"bus", "topic"},
		Help: "Events that this process has published."}
	// Delivered has the label bus.
	Delivered = &extension.Metric{
		Name: "delivered_events_total", Kind: extension.Counter, Labels: []string{"bus"},
		Help: "Events that subscribers have answered for, each once for each subscriber."}
	// Requests has the labels bus and code.
	Requests = &extension.Metric{
		Name: "requests_total", Kind: extension.Counter, Labels: []string{"bus", "code"},
		Help: "Requests to subscribers that have ended, by the status of the answer; 0: there was none."}
	// Took has the label bus.
	Took = &extension.Metric{
		Name: "request_seconds", Kind: extension.Histogram, Labels: []string{"bus"},
		Help: "How long a request to a subscriber took."}
	// Delay has the label bus.
	Delay = &extension.Metric{
		Name: "delay_seconds", Kind: extension.Histogram, Labels: []string{"bus"},
		Help: "Time from the arrival of the oldest event of a batch to the answer that settled it."}
	// Dead has the label bus.
	Dead = &extension.Metric{
		Name: "dead_total", Kind: extension.Counter, Labels: []string{"bus"},
		Help: "Events that have become dead letters of subscribers."}
	// Fenced has the label bus.
	Fenced = &extension.Metric{
		Name: "fenced_total", Kind: extension.Counter, Labels: []string{"bus"},
		Help: "Times that another owner had a delivery partition when this one stored how far subscribers are."}
	// Cold has the label bus.
	Cold = &extension.Metric{
		Name: "cold_reads_total", Kind: extension.Counter, Labels: []string{"bus"},
		Help: "Reads for one subscriber alone, of events that were not in memory any more."}

	queued  = ofBus("stored_queued_events", "Events that wait for subscribers or are in a request, for each of them.")
	oldest  = ofBus("stored_oldest_seconds", "Time since the first of these events came; 0 without one.")
	dropped = ofBus("stored_dropped_events", "Events that subscribers have missed, as full topics, lack of memory or their age had them dropped; of subscribers that there are.")
	dead    = ofBus("stored_dead_events", "Events that have become dead letters of subscribers that there are.")

	subscribers = &extension.Metric{
		Name: "stored_subscribers", Kind: extension.Gauge, Labels: []string{"bus", "state"}, OfApp: true,
		Help: "Subscribers by state: ok, failing, waiting (likewise, for the time of the next attempt), paused, disabled or unreadable."}
	queuedOf = ofSubscriber("stored_subscriber_queued_events", "Events that wait for a subscriber or are in a request; of no one in an app with more than 1000 of them.")
	oldestOf = ofSubscriber("stored_subscriber_oldest_seconds", "Time since the first of these events came; 0 without one.")

	metrics = []*extension.Metric{Published, Delivered, Requests, Took, Delay, Dead, Fenced, Cold, queued, oldest, dropped, dead, subscribers, queuedOf, oldestOf}
)

func ofBus(name, help string) *extension.Metric {
	return &extension.Metric{Name: name, Help: help, Kind: extension.Gauge, Labels: []string{"bus"}, OfApp: true}
}

func ofSubscriber(name, help string) *extension.Metric {
	return &extension.Metric{Name: name, Help: help, Kind: extension.Gauge, Labels: []string{"bus", "subscriber"}, OfApp: true}
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
	type sums struct {
		queued, dropped, dead int64
		oldest                time.Duration
		states                map[string]int
	}
	of := map[string]*sums{}
	for _, b := range buses {
		of[b.name] = &sums{states: map[string]int{}}
	}
	for i := range all {
		s, sum := &all[i], of[all[i].Bus]
		sum.queued, sum.dropped, sum.dead = sum.queued+s.Queued, sum.dropped+s.Dropped, sum.dead+s.Dead
		sum.oldest = max(sum.oldest, s.age(now))
		sum.states[s.State]++
		if len(all) <= mostSubscribers {
			add(extension.Sample{Metric: queuedOf, Labels: []string{s.Bus, s.Subscriber}, Value: float64(s.Queued)})
			add(extension.Sample{Metric: oldestOf, Labels: []string{s.Bus, s.Subscriber}, Value: s.age(now).Seconds()})
		}
	}
	for name, sum := range of {
		for m, v := range map[*extension.Metric]float64{
			queued: float64(sum.queued), oldest: sum.oldest.Seconds(), dropped: float64(sum.dropped), dead: float64(sum.dead),
		} {
			add(extension.Sample{Metric: m, Labels: []string{name}, Value: v})
		}
		for _, state := range allStates {
			add(extension.Sample{Metric: subscribers, Labels: []string{name, state}, Value: float64(sum.states[state])})
		}
	}
	return err
}
