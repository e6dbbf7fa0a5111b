package main

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/runnel-go/runnel/bench/internal/stats"
)

const modelAbout = "What an event of 100 bytes costs the server, as the CPU time of its main thread: a µs to send it in " +
	"batches of 100, b µs for each processor that drains a backlog. The model says a + k·b for k processors. It is held " +
	"against three processors that drain at once, and against sending while two processors follow, which do not find " +
	"as much to read at once."

func planModel(ctx context.Context, b *Bench) (*Plan, error) {
	backlog := b.packed()
	backlog.Events = b.scale(200_000, 20_000)
	if err := fill(ctx, b.rdb, backlog); err != nil {
		return nil, err
	}
	one := backlog.runnel("raw")
	three := one
	three.Processors = 3
	send := b.produced(100, backlog.Events)
	send.Role = "runnel-send"
	following := send.runnel("raw")
	following.Processors = 2
	return &Plan{
		Sides: []Side{
			{Name: "send", Task: send, Before: dropSent},
			{Name: "one processor", Task: one},
			{Name: "three processors", Task: three},
			{Name: "send to two processors", Task: following, Before: dropSent, Run: func(ctx context.Context, t Task) (Result, error) {
				send.URL, send.Run = t.URL, t.Run
				return together(ctx, t, send)
			}},
		},
		Claims: []Claim{
			figure("a, to send an event", "send", "server", "µs", stats.Bar{}),
			figure("b, to process it once", "one processor", "server", "µs", stats.Bar{}),
			modelled("three processors", 0, 3),
			modelled("send to two processors", 1, 2),
		},
		Columns: []Column{rateColumn, cpuColumn, serverColumn},
	}, nil
}

// modelled is what a side costs the server, of what the model says: sends·a + processors·b.
func modelled(side string, sends, processors float64) Claim {
	return Claim{Name: side + ", measured / model", Unit: "×", Of: func(r Round) float64 {
		return r[side]["server"] / (sends*r["send"]["server"] + processors*r["one processor"]["server"])
	}}
}

// together runs tasks at the same time, and returns the figures of the first.
func together(ctx context.Context, tasks ...Task) (Result, error) {
	g, ctx := errgroup.WithContext(ctx)
	results := make([]Result, len(tasks))
	for i, t := range tasks {
		g.Go(func() (err error) {
			results[i], err = runChild(ctx, t)
			return err
		})
	}
	err := g.Wait()
	return results[0], err
}
