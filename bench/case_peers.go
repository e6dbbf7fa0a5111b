package main

import (
	"context"
	"fmt"
)

const peersAbout = "A backlog of 100-byte payloads, as much as each can process in a few seconds, by one process. " +
	"watermill-redisstream has 16 topics and a subscriber for each, and keeps the order within a topic; asynq and redisqueue keep none, " +
	"and run as many goroutines as suits them best. redisqueue reads the very streams that Runnel reads. " +
	"The settings of each are the best of those that were tried, which stand below."

func planPeers(ctx context.Context, b *Bench) (*Plan, error) {
	packed := b.packed()
	topics := Task{Role: "watermill", Stream: "topics", Partitions: drainPartitions, Size: 100, Events: b.scale(30_000, 3_000)}
	if err := fill(ctx, b.rdb, packed); err != nil {
		return nil, err
	}
	if err := fillTopics(ctx, b.rdb, topics); err != nil {
		return nil, err
	}
	p := &Plan{
		Sides:   []Side{{Name: "Raw", Task: packed.runnel("raw")}},
		Columns: []Column{rateColumn, cpuColumn},
		Claims: []Claim{
			ratio("rate", "Raw", "watermill", atLeast(15)),
			ratio("rate", "Raw", "asynq", atLeast(30)),
			ratio("rate", "Raw", "redisqueue", atLeast(5)),
		},
	}
	for _, peer := range []struct {
		name     string
		variants []Side
	}{
		{"watermill", watermillSides(topics)},
		{"asynq", asynqSides(b.scale(20_000, 2_000))},
		{"redisqueue", redisqueueSides(packed, b.scale(60_000, 10_000))},
	} {
		best, notes, err := b.best(ctx, peer.name, peer.variants)
		if err != nil {
			return nil, err
		}
		p.Sides = append(p.Sides, best)
		p.Notes = append(p.Notes, notes...)
	}
	return p, nil
}

func watermillSides(t Task) []Side {
	shared, own := t, t
	shared.Pool = 4 * drainPartitions
	return []Side{
		{Name: "watermill, one client", Task: shared},
		{Name: "watermill, a client for each subscriber", Task: own},
	}
}

func asynqSides(events int) (out []Side) {
	for _, n := range []int{10, 32, 100} {
		out = append(out, Side{
			Name:   fmt.Sprint("asynq, concurrency ", n),
			Task:   Task{Role: "asynq", Size: 100, Events: events, Readers: n, Pool: n + 10},
			Before: fillQueue,
		})
	}
	return out
}

func redisqueueSides(t Task, events int) (out []Side) {
	for _, n := range []struct{ goroutines, buffer int }{{10, 100}, {16, 1000}, {64, 1000}, {100, 4000}} {
		t.Role, t.Events, t.Whole, t.Readers, t.Count = "redisqueue", events, false, n.goroutines, n.buffer
		out = append(out, Side{Name: fmt.Sprintf("redisqueue, concurrency %d, buffer %d", n.goroutines, n.buffer), Task: t})
	}
	return out
}
