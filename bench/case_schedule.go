package main

import (
	"context"
	"time"

	"github.com/runnel-go/runnel/bench/internal/stats"
)

const scheduleAbout = "Jobs of a trigger and three tasks, each behind the one before, at times that are all missed at first; the functions do nothing. " +
	"By hand is the package's scripts in one goroutine for each of 16 partitions: it fires all times, then it reads facts by XREADGROUP, applies them " +
	"and acks them, takes up to 128 runs and ends them, again and again. The worker has 256 runs at once, or 16. Rates are runs."

var (
	runRate  = Column{"rate", "k runs/s", 1e-3}
	runCPU   = Column{"cpu", "CPU µs/run", 1}
	runOnTop = Column{"server", "server µs/run", 1}
)

func planSchedule(_ context.Context, b *Bench) (*Plan, error) {
	t := Task{Stream: "jobs", Partitions: drainPartitions, Events: b.scale(chains*tasksEach*300, chains*tasksEach*100), Places: 256}
	few := t
	few.Places = 16
	return &Plan{
		Sides: []Side{
			t.sideOf("scheduler", "runnel-schedule", false),
			t.sideOf("by hand", "bare-schedule", false),
			few.sideOf("scheduler, 16 at once", "runnel-schedule", false),
		},
		Claims: []Claim{
			ratio("rate", "scheduler", "by hand", atLeast(0.6)),
			ratio("rate", "scheduler, 16 at once", "by hand", atLeast(0.35)),
			ratio("server", "scheduler", "by hand", stats.Bar{}),
		},
		Columns: []Column{runRate, runCPU, runOnTop},
	}, nil
}

const scheduleIdleAbout = "A worker whose scheduler has 64 triggers that come in a hundred years, against one that owns as many partitions of an empty " +
	"stream, over two leases. Requests are what it writes to its connections."

func planScheduleIdle(_ context.Context, b *Bench) (*Plan, error) {
	t := Task{Stream: "idle", Codec: "msgpack", Partitions: drainPartitions, Length: time.Duration(b.scale(2, 1)) * defaultLease}
	more := func(r Round) float64 { return r["scheduler"]["requests"] - r["stream"]["requests"] }
	return &Plan{
		Rounds:  b.scale(idleRounds, 1),
		Sides:   []Side{t.sideOf("scheduler", "idle-schedule", false), t.sideOf("stream", "runnel-idle", false)},
		Columns: []Column{{"requests", "requests/s", 1}, {"scripts", "scripts/s", 1}, {"cpu", "CPU %", 1}},
		Claims: []Claim{
			{Name: "requests per partition and lease, beside those of a stream", Bar: atMost(1.1), Of: func(r Round) float64 {
				return more(r) * defaultLease.Seconds() / drainPartitions
			}},
		},
	}, nil
}

const scheduleTriggersAbout = "100 000 triggers in 16 partitions that come each minute, evenly over it, with one worker: how long after its time, by the " +
	"server's clock, the fact of each is in the log, over a minute."

func planScheduleTriggers(_ context.Context, b *Bench) (*Plan, error) {
	t := Task{Stream: "jobs", Partitions: drainPartitions, Events: b.scale(100_000, 5_000)}
	return &Plan{
		Rounds:  b.scale(3, 1),
		Sides:   []Side{t.sideOf("triggers", "fired-triggers", false)},
		Columns: []Column{{"p50", "p50 ms", 1}, {"p99", "p99 ms", 1}, {"max", "max ms", 1}},
		Claims:  []Claim{figure("from due to fact, p99", "triggers", "p99", "ms", atMost(50))},
	}, nil
}
