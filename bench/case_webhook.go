package main

import (
	"context"
	"time"

	"github.com/runnel-go/runnel/bench/internal/stats"
)

const webhookAbout = "A backlog of a topic that is delivered to its subscribers, 100 events of 140 bytes in a batch, with one batch of each subscriber under " +
	"way; the receiver reads the body and answers 204, in the same process. By hand is a loop of net/http for each subscriber that posts the same " +
	"bodies one after another, with the client that the worker has, and neither reads nor stores anything. Loops that store read each batch from " +
	"the server, and store their position behind it. With single events it is batches of one. Rates are requests."

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
			many.sideOf("50 loops that store", "stored-webhook", false),
			one.sideOf("bus, one subscriber", "runnel-webhook", false), one.sideOf("by hand, one loop", "bare-webhook", false),
			one.sideOf("one loop that stores", "stored-webhook", false),
			single.sideOf("bus, single events", "runnel-webhook", false), single.sideOf("by hand, single events", "bare-webhook", false),
		},
		Claims: []Claim{
			ratio("rate", "bus, 50 subscribers", "by hand, 50 loops", atLeast(0.75)),
			ratio("rate", "bus, one subscriber", "by hand, one loop", atLeast(0.55)),
			ratio("rate", "bus, single events", "by hand, single events", atLeast(0.6)),
			ratio("rate", "bus, 50 subscribers", "50 loops that store", stats.Bar{}),
			ratio("rate", "bus, one subscriber", "one loop that stores", stats.Bar{}),
		},
		Columns: []Column{requestRate, requestCPU, requestOnTop},
	}, nil
}

const webhookScaleAbout = "10 000 subscribers of 100 topics to which 100 events per second are published, with a deadline of 2 s: how long after it the batches " +
	"come. In one side 100 of the subscribers are dead: half refuse, half hang for 20 s."

func planWebhookScale(_ context.Context, b *Bench) (*Plan, error) {
	t := Task{Stream: "bus", Partitions: drainPartitions, Readers: b.scale(10_000, 1_000), Rate: b.scale(100, 50), Length: time.Duration(b.scale(60, 10)) * time.Second}
	dead := t
	dead.Each = true
	return &Plan{
		Rounds: b.scale(3, 1),
		Sides:  []Side{t.sideOf("all healthy", "scale-webhook", false), dead.sideOf("100 dead", "scale-webhook", false)},
		Claims: []Claim{
			ratio("p99", "100 dead", "all healthy", atMost(1.5)),
			ratio("p50", "100 dead", "all healthy", stats.Bar{}),
		},
		Columns: []Column{{"p50", "p50 ms", 1}, {"p99", "p99 ms", 1}, {"batches", "batches", 1}},
	}, nil
}

const webhookIdleAbout = "A worker whose bus has 10 000 subscribers, to whom nobody publishes anything, over two leases, beside one whose bus has none. Requests " +
	"are what it writes to its connections."

func planWebhookIdle(_ context.Context, b *Bench) (*Plan, error) {
	t := Task{Stream: "bus", Partitions: drainPartitions, Length: time.Duration(b.scale(2, 1)) * defaultLease}
	many := t
	many.Readers = b.scale(10_000, 1_000)
	return &Plan{
		Rounds:  b.scale(idleRounds, 1),
		Sides:   []Side{many.sideOf("10 000 subscribers", "idle-webhook", false), t.sideOf("none", "idle-webhook", false)},
		Columns: []Column{{"requests", "requests/s", 1}, {"cpu", "CPU %", 1}, {"memory", "memory KiB", 1}},
		Claims: []Claim{
			figure("requests per second", "10 000 subscribers", "requests", "", atMost(5)),
		},
	}, nil
}

const webhookIngestAbout = "Events that are published over HTTP, one in a request, by 32 clients at once and by one, in the same process. By hand is a handler that " +
	"knows its token, decodes and checks the event, and adds it by XADD."

func planWebhookIngest(_ context.Context, b *Bench) (*Plan, error) {
	many := Task{Stream: "bus", Partitions: drainPartitions, Events: b.scale(64_000, 6_400), Readers: 32}
	one := many
	one.Events, one.Readers = b.scale(10_000, 1_000), 1
	return &Plan{
		Sides: []Side{
			many.sideOf("bus, 32 clients", "ingest-webhook", false), many.sideOf("by hand, 32 clients", "ingest-bare", false),
			one.sideOf("bus, one client", "ingest-webhook", false), one.sideOf("by hand, one client", "ingest-bare", false),
		},
		Claims: []Claim{
			ratio("rate", "bus, 32 clients", "by hand, 32 clients", atLeast(1.1)),
			ratio("rate", "bus, one client", "by hand, one client", atLeast(0.85)),
		},
		Columns: []Column{requestRate, requestCPU, requestOnTop},
	}, nil
}
