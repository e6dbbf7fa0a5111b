package main

import (
	"context"
	"fmt"

	"github.com/runnel-go/runnel/bench/internal/stats"
)

// drainPartitions is the default number of partitions of a stream.
const drainPartitions = 16

const drainAbout = "A backlog of 100-byte payloads in 16 partitions, processed by one process: each time by a new " +
	"processor or consumer group that begins at its start. The rate counts from the first handled event to the last. " +
	"By hand is go-redis alone, with the acks in a goroutine of their own; the best of its variants is the counterpart."

func planDrain(ctx context.Context, b *Bench) (*Plan, error) {
	packed := b.packed()
	text := packed
	text.Stream, text.Codec = "text", "json"
	for _, t := range []Task{packed, text} {
		if err := fill(ctx, b.rdb, t); err != nil {
			return nil, err
		}
	}
	best, notes, err := b.best(ctx, "by hand", plainSides(packed, 64, 256))
	if err != nil {
		return nil, err
	}
	own := best.Task
	own.Reply = true
	return &Plan{
		Sides: []Side{
			{Name: "Take(100)", Task: packed.runnel("take")},
			{Name: "Records, MsgPack", Task: packed.runnel("records")},
			{Name: "by hand, MsgPack", Task: best.Task.decoding(packed)},
			{Name: "Raw", Task: packed.runnel("raw")},
			best,
			{Name: "by hand, own replies", Task: own},
			{Name: "by hand, JSON", Task: best.Task.decoding(text)},
			{Name: "Records, JSON", Task: text.runnel("records")},
		},
		Claims: []Claim{
			ratio("rate", "Raw", "by hand", atLeast(0.85)),
			ratio("rate", "Records, MsgPack", "by hand", atLeast(0.65)),
			ratio("rate", "Records, JSON", "by hand", atLeast(0.5)),
			ratio("rate", "Take(100)", "Records, MsgPack", atLeast(1)),
			ratio("rate", "Records, MsgPack", "by hand, MsgPack", stats.Bar{}),
			ratio("rate", "Records, JSON", "by hand, JSON", stats.Bar{}),
			ratio("rate", "by hand, own replies", "by hand", stats.Bar{}),
			ratio("cpu", "by hand, own replies", "by hand", stats.Bar{}),
		},
		Columns: []Column{rateColumn, cpuColumn, peakColumn},
		Notes:   notes,
	}, nil
}

// packed is the backlog of most cases.
func (b *Bench) packed() Task {
	return Task{Stream: "packed", Codec: "msgpack", Partitions: drainPartitions, Events: b.events, Whole: true, Size: 100}
}

// runnel is the task of a Runnel worker over the task's stream.
func (t Task) runnel(loop string) Task {
	t.Role, t.Loop, t.Count = "runnel-drain", loop, 100
	return t
}

// decoding is a loop by hand over the stream of another task that decodes its events.
func (t Task) decoding(stream Task) Task {
	t.Stream, t.Codec, t.Decode = stream.Stream, stream.Codec, true
	return t
}

// ahead is how many events the first replies to loops by hand bring, 0 if that is most of all.
func (t Task) ahead(count int) int64 {
	n := t.Partitions * count
	if n > t.Events/2 {
		return 0
	}
	return int64(n)
}

// plainSides are the variants of the loop by hand.
func plainSides(t Task, counts ...int) (out []Side) {
	for _, readers := range []int{1, 16} {
		for _, count := range counts {
			if t.ahead(count) == 0 {
				continue // most of it would come with the first replies
			}
			t.Role, t.Readers, t.Count, t.Pool = "plain-drain", readers, count, 2*readers+10
			out = append(out, Side{Name: fmt.Sprintf("by hand, %d readers, COUNT %d", readers, count), Task: t})
		}
	}
	return out
}
