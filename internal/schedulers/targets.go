package schedulers

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/schedule"
	"github.com/runnel-go/runnel/internal/store"
)

// targets are the jobs of schedulers.
func targets(ctx context.Context, c *store.Client, owner string) (out []extension.Target, err error) {
	all, err := load(ctx, c, owner)
	for _, s := range all {
		stored, err := s.Ledger().Jobs(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, extension.Target{Owner: s.name, Part: schedule.GateRuns, Processor: schedule.Processor, Noun: "run"})
		for _, name := range slices.Sorted(maps.Keys(stored)) {
			out = append(out, extension.Target{
				Owner: s.name, Part: name, Processor: schedule.Processor, Noun: "run",
				Pause: func(ctx context.Context, p extension.Pause) (string, error) {
					return s.pause(ctx, &schedule.Op{Kind: schedule.OpPause, Job: name, By: p.Who, Why: p.Why, For: p.For})
				},
				Running: func(ctx context.Context) (int, error) { return s.View().Running(ctx, s.partitions, name) },
				Resume: func(ctx context.Context, who string) (string, error) {
					return s.pause(ctx, &schedule.Op{Kind: schedule.OpResume, Job: name, By: who})
				},
			})
		}
	}
	return out, err
}

func (s *scheduler) pause(ctx context.Context, op *schedule.Op) (string, error) {
	op.ID, op.At = rand.Text(), time.Now().UnixMilli()
	number, err := s.Ledger().Submit(ctx, op)
	if err != nil {
		return "", err
	}
	outcome, err := s.Ledger().WaitOp(ctx, number, opPoll)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("job %s of scheduler %s: %s", op.Job, s.name, outcome), nil
}
