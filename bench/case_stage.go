package main

import (
	"context"
	"fmt"
	"time"

	"github.com/runnel-go/runnel/bench/internal/stats"
)

const stageAbout = "Entities of 200 bytes in 16 partitions, each touched and then visited once by the one stage of the set, with a " +
	"function that only says Updated. By hand is go-redis and the same calls of the package's scripts in one goroutine: a pipeline of takes " +
	"of up to 16 touches of each partition, one of commits that end these and begin the visits, one of commits that store the " +
	"entities and end the visits. The set's stage may have 256 visits at once, as the loop has, or the default of 16. Rates are " +
	"entities, each of which is two visits."

var (
	entityRate  = Column{"rate", "k entities/s", 1e-3}
	entityCPU   = Column{"cpu", "CPU µs/entity", 1}
	entityOnTop = Column{"server", "server µs/entity", 1}
)

// entities is a task over a set whose entities are stored before each run.
func (b *Bench) entities(n int) Task {
	return Task{Stream: "listings", Codec: "blob", Partitions: drainPartitions, Size: 200, Events: n, Count: 16, Places: 256}
}

// ofSet is a side whose set is filled at first.
func (t Task) ofSet(name, role, codec string) Side {
	t.Role, t.Codec = role, codec
	return Side{Name: name, Task: t, Before: fillSet}
}

func planStage(ctx context.Context, b *Bench) (*Plan, error) {
	t := b.entities(b.scale(40_000, 3_000))
	usual := t
	usual.Places = 0
	note, err := b.memoryOf(ctx, t)
	if err != nil {
		return nil, err
	}
	return &Plan{
		Sides: []Side{
			t.ofSet("set", "runnel-stage", "blob"),
			t.ofSet("by hand", "bare-stage", "blob"),
			t.ofSet("set, MsgPack", "runnel-stage", "msgpack"),
			usual.ofSet("set, 16 at once", "runnel-stage", "blob"),
		},
		Claims: []Claim{
			ratio("rate", "set", "by hand", atLeast(0.7)),
			ratio("rate", "set, MsgPack", "by hand", atLeast(0.55)),
			ratio("server", "set", "by hand", atMost(1.15)),
			ratio("rate", "set, 16 at once", "by hand", stats.Bar{}),
			ratio("server", "set, 16 at once", "by hand", stats.Bar{}),
		},
		Columns: []Column{entityRate, entityCPU, entityOnTop},
		Notes:   []string{note},
	}, nil
}

// memoryOf says what entities and their visits take in the server's memory.
func (b *Bench) memoryOf(ctx context.Context, t Task) (string, error) {
	t.URL = b.url
	used := func() (n float64) {
		fmt.Sscan(b.rdb.InfoMap(ctx, "memory").Item("Memory", "used_memory"), &n)
		return n
	}
	if err := flush(ctx, b, &t); err != nil {
		return "", err
	}
	empty := used()
	if err := fillSet(ctx, b, &t); err != nil {
		return "", err
	}
	all, entities, visits := used()-empty, int64(0), int64(0)
	for n := range t.Partitions {
		entities += b.rdb.MemoryUsage(ctx, t.setKey("ent", n), 0).Val()
		visits += b.rdb.MemoryUsage(ctx, t.setKey("touch", n), 0).Val()
	}
	n := float64(t.Events)
	return fmt.Sprintf("memory, by MEMORY USAGE: an entity of %d bytes with an ID of %d takes %.0f bytes, a visit that waits %.0f; by used_memory both take %.0f",
		t.Size, len(entityID(0)), float64(entities)/n, float64(visits)/n, all/n), nil
}

const stagePutAbout = "Entities of 200 bytes stored in 16 partitions, 100 at a time from one goroutine, by Put and by pipelines of the script that " +
	"Put calls, one call for each partition. The server is emptied before each run."

func planStagePut(_ context.Context, b *Bench) (*Plan, error) {
	t := b.entities(b.scale(200_000, 10_000))
	t.Count, t.Readers = 100, 1
	return &Plan{
		Sides: []Side{t.sideOf("Put of 100", "runnel-put", false), t.sideOf("pipeline of save", "bare-save", false)},
		Claims: []Claim{
			ratio("rate", "Put of 100", "pipeline of save", atLeast(0.8)),
			ratio("server", "Put of 100", "pipeline of save", stats.Bar{}),
		},
		Columns: []Column{entityRate, entityCPU, entityOnTop},
	}, nil
}

const stageLatencyAbout = "From saving an entity to the function that visits it. Another process saves at even distances, 200 a second, and writes the " +
	"time into the entity. By hand is a blocking XREAD of the wakes of 16 partitions and a take, with which the entity is there; with the same " +
	"calls as the set, it first ends the touch, which begins the visit. Each run has its quantiles; its first tenth is left out."

func planStageLatency(_ context.Context, b *Bench) (*Plan, error) {
	t := b.entities(b.scale(800, 200))
	t.Rate = 200
	side := func(name, role string, whole bool) Side {
		s := t.sideOf(name, role, false)
		s.Task.Whole = whole
		return s
	}
	return &Plan{
		Sides: []Side{side("set", "runnel-seen", false), side("by hand", "bare-seen", false), side("by hand, same calls", "bare-seen", true)},
		Claims: []Claim{
			ratio("p50", "set", "by hand", atMost(1.5)),
			ratio("p50", "set", "by hand, same calls", stats.Bar{}),
			ratio("p99", "set", "by hand", stats.Bar{}),
			ratio("p99", "set", "by hand, same calls", stats.Bar{}),
		},
		Columns: []Column{{"p50", "p50 µs", 1}, {"p99", "p99 µs", 1}, {"max", "max µs", 1}},
	}, nil
}

const stageIdleAbout = "A worker whose set has nothing to do, against one that owns as many partitions of an empty stream, over two leases. " +
	"Requests are what it writes to its connections."

// defaultLease is that of Runnel.
const defaultLease = 10 * time.Second

func planStageIdle(_ context.Context, b *Bench) (*Plan, error) {
	length := time.Duration(b.scale(2, 1)) * defaultLease
	t := Task{Stream: "idle", Codec: "msgpack", Partitions: drainPartitions, Length: length}
	more := func(r Round, figure string) float64 { return r["set"][figure] - r["stream"][figure] }
	return &Plan{
		Rounds:  b.scale(idleRounds, 1),
		Sides:   []Side{t.sideOf("set", "idle-set", false), t.sideOf("stream", "runnel-idle", false)},
		Columns: []Column{{"requests", "requests/s", 1}, {"scripts", "scripts/s", 1}, {"cpu", "CPU %", 1}},
		Claims: []Claim{
			{Name: "scripts per partition and lease, beside those of a stream", Bar: atMost(1.1), Of: func(r Round) float64 {
				return more(r, "scripts") * defaultLease.Seconds() / drainPartitions
			}},
			{Name: "other requests beside those of a stream", Unit: "/s", Bar: atMost(0.2), Of: func(r Round) float64 {
				return more(r, "requests") - more(r, "scripts")
			}},
		},
	}, nil
}

const stageShapesAbout = "The case stage in other shapes: 1 and 256 partitions, 96 stages of which one is busy, and entities of 100 KiB."

func planStageShapes(_ context.Context, b *Bench) (*Plan, error) {
	p := &Plan{Columns: []Column{entityRate, entityCPU, entityOnTop}}
	for _, shape := range []struct {
		name string
		make func(*Task)
	}{
		{"1 partition", func(t *Task) { t.Partitions = 1 }},
		{"256 partitions", func(t *Task) { t.Partitions = 256 }},
		{"96 stages", func(t *Task) { t.Stages, t.Events = 96, t.Events/4 }},
		{"100 KiB", func(t *Task) { t.Size, t.Events = 100<<10, max(t.Events/20, 1_000) }},
	} {
		t := b.entities(b.scale(40_000, 3_000))
		shape.make(&t)
		set, hand := "set, "+shape.name, "by hand, "+shape.name
		p.Sides = append(p.Sides, t.ofSet(set, "runnel-stage", "blob"), t.ofSet(hand, "bare-stage", "blob"))
		p.Claims = append(p.Claims, ratio("rate", set, hand, stats.Bar{}), ratio("server", set, hand, stats.Bar{}))
	}
	return p, nil
}
