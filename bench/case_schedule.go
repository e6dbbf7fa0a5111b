package main

import (
	"context"

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
