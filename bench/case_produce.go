package main

import (
	"context"
	"fmt"

	"github.com/runnel-go/runnel/bench/internal/stats"
)

const produceAbout = "Payloads of 100 bytes sent to 16 partitions, 100 at a time from one goroutine, and one at a time from 64. " +
	"By hand is XADD MAXLEN ~, in pipelines of 100, of entries that were encoded before, or that are encoded on the way. " +
	"The streams are emptied before each run."

// senders is how many goroutines send one by one.
const senders = 64

// produced is what is sent; each side of a round begins with an empty server.
func (b *Bench) produced(size, events int) Task {
	return Task{
		Stream: "sent", Sent: true, Codec: "msgpack", Partitions: drainPartitions, Size: size, Events: events, Count: 100, Readers: 1,
	}
}

func flush(ctx context.Context, b *Bench, _ *Task) error { return b.rdb.FlushAll(ctx).Err() }

// sideOf is a side whose server is empty at first.
func (t Task) sideOf(name, role string, encode bool) Side {
	t.Role, t.Decode = role, encode
	return Side{Name: name, Task: t, Before: flush}
}

func planProduce(ctx context.Context, b *Bench) (*Plan, error) {
	batches := b.produced(100, b.scale(200_000, 20_000))
	single := b.produced(100, b.scale(60_000, 6_000))
	single.Count, single.Readers = 1, senders
	wide := single
	wide.Pool = senders
	best, notes, err := b.best(ctx, "XADD, one by one", []Side{
		single.sideOf("one by one, default pool", "plain-send", false),
		wide.sideOf(fmt.Sprint("one by one, pool of ", senders), "plain-send", false),
	})
	if err != nil {
		return nil, err
	}
	return &Plan{
		Sides: []Side{
			batches.sideOf("pipeline that encodes", "plain-send", true),
			batches.sideOf("Send of 100", "runnel-send", false),
			batches.sideOf("pipeline", "plain-send", false),
			single.sideOf("Send, one by one", "runnel-send", false),
			best,
		},
		Claims: []Claim{
			ratio("rate", "Send of 100", "pipeline", atLeast(0.8)),
			ratio("rate", "Send of 100", "pipeline that encodes", stats.Bar{}),
			ratio("rate", "Send, one by one", "XADD, one by one", atLeast(1.5)),
		},
		Columns: []Column{rateColumn, cpuColumn},
		Notes:   notes,
	}, nil
}

const producePayloadsAbout = "Sends of 100 records of 1 KB and of 64 KB, against pipelines of 100 XADD MAXLEN ~ of entries that were encoded before, or that are encoded on the way."

func planProducePayloads(_ context.Context, b *Bench) (*Plan, error) {
	p := &Plan{Columns: []Column{rateColumn, cpuColumn}}
	for _, size := range []struct {
		name          string
		bytes, events int
		bar           stats.Bar
	}{{"1 KB", 1 << 10, b.scale(100_000, 10_000), stats.Bar{}}, {"64 KB", 64 << 10, b.scale(10_000, 300), atLeast(0.85)}} {
		t := b.produced(size.bytes, size.events)
		p.Sides = append(p.Sides, t.sideOf("Send, "+size.name, "runnel-send", false), t.sideOf("pipeline, "+size.name, "plain-send", false),
			t.sideOf("pipeline that encodes, "+size.name, "plain-send", true))
		p.Claims = append(p.Claims, ratio("rate", "Send, "+size.name, "pipeline, "+size.name, stats.Bar{}),
			ratio("rate", "Send, "+size.name, "pipeline that encodes, "+size.name, size.bar))
	}
	return p, nil
}
