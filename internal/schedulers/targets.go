package schedulers

import (
	"context"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/schedule"
	"github.com/runnel-go/runnel/internal/store"
)

// targets are the jobs of schedulers.
func targets(ctx context.Context, c *store.Client, owner string) (out []extension.Target, err error) {
	all, err := load(ctx, c, owner)
	for _, s := range all {
		target := extension.Target{Owner: s.name, Part: schedule.GateRuns, Processor: schedule.Processor, Noun: "run"}
		out = append(out, target)
		for _, name := range s.names() {
			target.Part = name
			target.Pause = func(ctx context.Context, p extension.Pause) (string, error) {
				return s.do(ctx, &schedule.Op{Kind: schedule.OpPause, Job: name, By: p.Who, Why: p.Why, For: p.For}, true)
			}
			target.Running = func(ctx context.Context) (int, error) { return s.View().Running(ctx, s.partitions, name) }
			target.Resume = func(ctx context.Context, who string) (string, error) {
				return s.do(ctx, &schedule.Op{Kind: schedule.OpResume, Job: name, By: who}, true)
			}
			out = append(out, target)
		}
	}
	return out, err
}
