package main

import "context"

const webhookAbout = "A backlog of a topic that is delivered to its subscribers, 100 events of 140 bytes in a batch, with one batch of each subscriber under " +
	"way; the receiver reads the body and answers 204, in the same process. By hand is a loop of net/http for each subscriber that posts the same " +
	"bodies one after another, with the client that the worker has, and stores nothing. With single events it is batches of one. Rates are requests."

var (
	requestRate  = Column{"rate", "k requests/s", 1e-3}
	requestCPU   = Column{"cpu", "CPU µs/request", 1}
	requestOnTop = Column{"server", "server µs/request", 1}
)

func planWebhook(_ context.Context, b *Bench) (*Plan, error) {
	many := Task{Stream: "bus", Partitions: drainPartitions, Events: b.scale(40_000, 4_000), Readers: 50, Count: 100}
	one, single := many, many
	one.Events, one.Readers = b.scale(8_000, 800), 1
	single.Count = 1
	return &Plan{
		Sides: []Side{
			many.sideOf("bus, 50 subscribers", "runnel-webhook", false), many.sideOf("by hand, 50 loops", "bare-webhook", false),
			one.sideOf("bus, one subscriber", "runnel-webhook", false), one.sideOf("by hand, one loop", "bare-webhook", false),
			single.sideOf("bus, single events", "runnel-webhook", false), single.sideOf("by hand, single events", "bare-webhook", false),
		},
		Claims: []Claim{
			ratio("rate", "bus, 50 subscribers", "by hand, 50 loops", atLeast(0.75)),
			ratio("rate", "bus, one subscriber", "by hand, one loop", atLeast(0.55)),
			ratio("rate", "bus, single events", "by hand, single events", atLeast(0.6)),
		},
		Columns: []Column{requestRate, requestCPU, requestOnTop},
	}, nil
}
