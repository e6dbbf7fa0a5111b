package buses

import (
	"context"

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
	metrics = []*extension.Metric{Published, Delivered, Requests, Took, Delay, Dead, Fenced, Cold}
)

// gatherer returns the Gather of the extension.
func gatherer(count *extension.Counters) func(context.Context, *store.Client, bool, func(extension.Sample)) error {
	return func(_ context.Context, _ *store.Client, ofApp bool, add func(extension.Sample)) error {
		if !ofApp {
			count.Each(add)
		}
		return nil
	}
}
