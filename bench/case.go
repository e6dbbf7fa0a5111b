package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/runnel-go/runnel/bench/internal/stats"
)

// A Case is a measurement on its own server.
type Case struct {
	Name  string
	About string   // for the report
	Args  []string // of redis-server
	Plan  func(ctx context.Context, b *Bench) (*Plan, error)
}

// A Plan is what a case measures once its server is filled. Each round runs every
// side once, in the order of the sides or, every other time, in the opposite one.
type Plan struct {
	Sides   []Side
	Claims  []Claim
	Columns []Column // of the table of sides
	Notes   []string // for the report
	Rounds  int      // at most so many, 0: as many as were asked for
}

// A Side is one of the things that are compared.
type Side struct {
	Name string
	Task Task // of a child process
	// Run measures a round, where that takes more than one child process.
	Run func(ctx context.Context, t Task) (Result, error)
	// Before prepares the server for a round, and is not measured.
	Before func(ctx context.Context, b *Bench, t *Task) error
}

// A Round is what all sides measured, by their names.
type Round map[string]Result

// A Column is a figure of the sides.
type Column struct {
	Figure string  `json:"figure"` // its name in Result
	Title  string  `json:"title"`
	Scale  float64 `json:"scale"` // the table shows the figure times this
}

// A Claim is a value of each round, and the bar to compare it with.
type Claim struct {
	Name string
	Unit string // "×" for a ratio
	Of   func(Round) float64
	Bar  stats.Bar // the zero value: none
}

// ratio is a claim about a figure of two sides, their rates or another.
func ratio(figure, over, under string, bar stats.Bar) Claim {
	name := over + " / " + under
	if figure != rateColumn.Figure {
		name += ", " + figure
	}
	return Claim{
		Name: name, Unit: "×", Bar: bar,
		Of: func(r Round) float64 { return r[over][figure] / r[under][figure] },
	}
}

func figure(name, side, figure, unit string, bar stats.Bar) Claim {
	return Claim{Name: name, Unit: unit, Bar: bar, Of: func(r Round) float64 { return r[side][figure] }}
}

func atLeast(v float64) stats.Bar { return stats.Bar{At: v} }
func atMost(v float64) stats.Bar  { return stats.Bar{At: v, AtMost: true} }

var (
	rateColumn  = Column{"rate", "k events/s", 1e-3}
	cpuColumn   = Column{"cpu", "CPU µs/event", 1}
	sleepColumn = Column{"sleep", "sleep µs", 1}
	peakColumn  = Column{"peak", "peak MiB", 1}
	// The time of the server's main thread, with everything before and after a command.
	serverColumn = Column{"server", "server µs/event", 1}
)

// cases are all cases, in the order in which they run.
var cases = []Case{
	{Name: "drain", About: drainAbout, Plan: planDrain},
	{Name: "peers", About: peersAbout, Plan: planPeers},
	{Name: "handlers", About: handlersAbout, Plan: planHandlers},
	{Name: "payloads", About: payloadsAbout, Plan: planPayloads},
	{Name: "partitions", About: partitionsAbout, Plan: planPartitions},
	{Name: "watched", About: watchedAbout, Plan: planWatched},
	{Name: "model", About: modelAbout, Plan: planModel},
	{Name: "processes", About: processesAbout, Plan: planProcesses},
	{Name: "produce", About: produceAbout, Plan: planProduce},
	{Name: "produce-payloads", About: producePayloadsAbout, Plan: planProducePayloads},
	{Name: "aof", About: aofAbout, Args: aofArgs, Plan: planAOF},
	{Name: "position", About: positionAbout, Plan: planPosition},
	{Name: "commit", About: commitAbout, Plan: planCommit},
	{Name: "rows", About: rowsAbout, Plan: planRows},
	{Name: "position-aof", About: positionAOFAbout, Args: aofArgs, Plan: planPositionAOF},
	{Name: "cluster", About: clusterAbout, Plan: planCluster},
	{Name: "latency", About: latencyAbout, Plan: planLatency},
	{Name: "idle", About: idleAbout, Plan: planIdle},
	{Name: "gaps", About: gapsAbout, Plan: planGaps},
	{Name: "stage", About: stageAbout, Plan: planStage},
	{Name: "stage-put", About: stagePutAbout, Plan: planStagePut},
	{Name: "stage-latency", About: stageLatencyAbout, Plan: planStageLatency},
	{Name: "stage-idle", About: stageIdleAbout, Plan: planStageIdle},
	{Name: "stage-shapes", About: stageShapesAbout, Plan: planStageShapes},
	{Name: "schedule", About: scheduleAbout, Plan: planSchedule},
	{Name: "schedule-triggers", About: scheduleTriggersAbout, Plan: planScheduleTriggers},
	{Name: "schedule-idle", About: scheduleIdleAbout, Plan: planScheduleIdle},
	{Name: "webhook", About: webhookAbout, Plan: planWebhook},
	{Name: "webhook-ingest", About: webhookIngestAbout, Plan: planWebhookIngest},
	{Name: "webhook-scale", About: webhookScaleAbout, Plan: planWebhookScale},
	{Name: "webhook-idle", About: webhookIdleAbout, Plan: planWebhookIdle},
}

// best runs some sides a few times in turn, and returns the one with the highest median rate under a name.
func (b *Bench) best(ctx context.Context, name string, sides []Side) (Side, []string, error) {
	rates, texts := make([][]float64, len(sides)), make([][]string, len(sides))
	for round := range b.scale(3, 1) {
		for i := range sides {
			at := (i + round) % len(sides)
			r, err := b.run(ctx, sides[at])
			if err != nil {
				return Side{}, nil, err
			}
			rates[at], texts[at] = append(rates[at], r["rate"]), append(texts[at], number(r["rate"]/1e3))
		}
	}
	chosen, notes := 0, []string(nil)
	for i, s := range sides {
		if stats.Median(rates[i]) > stats.Median(rates[chosen]) {
			chosen = i
		}
		notes = append(notes, fmt.Sprintf("%s: %s k/s", s.Name, strings.Join(texts[i], ", ")))
	}
	best := sides[chosen]
	best.Name = name
	return best, append(notes, "chosen: "+sides[chosen].Name), nil
}

// compare adds Runnel's loop over a backlog and the best one by hand, each with a name behind its own.
func (b *Bench) compare(ctx context.Context, p *Plan, name string, ours Task, hand []Side, bar stats.Bar) error {
	best, notes, err := b.best(ctx, "by hand, "+name, hand)
	if err != nil {
		return err
	}
	raw := Side{Name: "Raw, " + name, Task: ours}
	p.Sides = append(p.Sides, raw, best)
	p.Claims = append(p.Claims, ratio("rate", raw.Name, best.Name, bar))
	for _, n := range notes {
		p.Notes = append(p.Notes, name+": "+n)
	}
	return nil
}
