package main

import (
	"context"
	"fmt"
	"time"

	"github.com/runnel-go/runnel/bench/internal/stats"
)

const latencyAbout = "From XADD to the handler. Another process sends 100-byte payloads at even distances to 16 partitions and " +
	"writes the time into them; both sides are fed by it in the same way. By hand is one reader that blocks in XREADGROUP over " +
	"all partitions, with the acks in a goroutine of their own. Each run has its quantiles; its first tenth is left out."

func planLatency(_ context.Context, b *Bench) (*Plan, error) {
	p := &Plan{Columns: []Column{{"p50", "p50 µs", 1}, {"p99", "p99 µs", 1}, {"max", "max µs", 1}}}
	for _, pace := range []struct {
		name         string
		rate, events int
	}{{"200/s", 200, b.scale(800, 200)}, {"5 000/s", 5000, b.scale(12_500, 2_500)}} {
		t := Task{
			Stream: fmt.Sprint("at-", pace.rate), Codec: "msgpack", Partitions: drainPartitions, Size: 100,
			Events: pace.events, Rate: pace.rate, Readers: 1, Count: 64,
		}
		raw, hand := t, t
		raw.Role, hand.Role = "runnel-latency", "plain-latency"
		position := raw
		position.Loop = "position"
		p.Sides = append(p.Sides, Side{Name: "Raw, " + pace.name, Task: raw}, Side{Name: "by position, " + pace.name, Task: position}, Side{Name: "by hand, " + pace.name, Task: hand})
		for _, side := range []string{"Raw", "by position"} {
			for _, q := range []struct {
				figure string
				bar    stats.Bar
			}{{"p50", atMost(1.15)}, {"p99", atMost(1.3)}} {
				claim := ratio(q.figure, side+", "+pace.name, "by hand, "+pace.name, q.bar)
				claim.Name = q.figure + " at " + pace.name + ", " + side + " / by hand"
				p.Claims = append(p.Claims, claim)
			}
		}
	}
	return p, nil
}

const idleAbout = "A worker that owns empty partitions, after it has settled. Requests are what it writes to its connections, whatever " +
	"scripts do on the server; CPU is that of the worker's process. Memory is the heap and the stacks after a collection, " +
	"and what a partition takes is the difference between the two workers, shared out over the 1 008 partitions between them."

// idleRounds are enough for an interval: these figures vary little, and take long.
const idleRounds = 6

func planIdle(_ context.Context, b *Bench) (*Plan, error) {
	length := time.Duration(b.scale(10, 2)) * time.Second
	p := &Plan{
		Rounds:  b.scale(idleRounds, 1),
		Columns: []Column{{"requests", "requests/s", 1}, {"cpu", "CPU %", 1}, {"memory", "memory KiB", 1}},
	}
	for _, n := range []int{16, 1024} {
		t := Task{Role: "runnel-idle", Stream: fmt.Sprint("idle-", n), Codec: "msgpack", Partitions: n, Length: length}
		p.Sides = append(p.Sides, Side{Name: fmt.Sprint(n, " partitions"), Task: t})
	}
	p.Claims = []Claim{
		figure("requests with 16 partitions", "16 partitions", "requests", "/s", atMost(5)),
		figure("requests with 1 024 partitions", "1024 partitions", "requests", "/s", atMost(30)),
		figure("CPU with 16 partitions", "16 partitions", "cpu", "% of a core", atMost(0.5)),
		figure("CPU with 1 024 partitions", "1024 partitions", "cpu", "% of a core", atMost(0.5)),
		{Name: "memory per partition", Unit: "KiB", Bar: atMost(16), Of: func(r Round) float64 {
			return (r["1024 partitions"]["memory"] - r["16 partitions"]["memory"]) / (1024 - 16)
		}},
	}
	return p, nil
}
