package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/rstream"
)

func (p *program) remove() *cli.Command {
	return p.command(&cli.Command{
		Name:      "rm",
		Usage:     "forget a processor that no worker runs any more, so that trimming does not wait for it",
		ArgsUsage: "STREAM/PROCESSOR",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "yes", DisableDefaultText: true, Usage: "also if events wait for it"},
			&cli.BoolFlag{Name: "dead", DisableDefaultText: true, Usage: "remove its dead letters, too"},
		},
		Action: p.action(runRemove),
	},
		"PROG processor rm orders/old",
		"PROG processor rm orders/old --yes --dead")
}

// removed is what `processor rm` tells.
type removed struct {
	Stream    string `json:"stream"`
	Processor string `json:"processor"`
	Lag       int64  `json:"lag"`    // events that it will not process
	Parked    int64  `json:"parked"` // and those that were parked
	Dead      int64  `json:"dead"`   // dead letters that were removed
}

func runRemove(ctx context.Context, s *session, c *cli.Context) error {
	stream, processor, err := processorArgument(c)
	if err != nil {
		return err
	}
	if _, err := s.registered(ctx, stream, processor); err != nil {
		return err
	}
	state, err := inspect.Processor(ctx, s.client, stream, processor, 0)
	if err != nil {
		return err
	}
	name := stream + "/" + processor
	if pythonRuns(state.Members) {
		if _, err := s.client.Unregister(ctx, stream, processor); err != nil {
			return err
		}
		return s.out.line(removed{Stream: stream, Processor: processor}, "%s is no processor of this app any more; Python's runnel, which runs it, goes on", name)
	}
	for _, m := range state.Members {
		if m.Alive {
			return fmt.Errorf("%s is run by worker %s: stop it first", name, m.Worker)
		}
	}
	if waiting := state.Totals.Lag + state.Totals.Parked; waiting > 0 && !c.Bool("yes") {
		return fmt.Errorf("%s has not processed %d events, %d of them parked, and never will: say --yes", name, waiting, state.Totals.Parked)
	}
	gone := removed{Stream: stream, Processor: processor, Lag: state.Totals.Lag, Parked: state.Totals.Parked}
	if c.Bool("dead") {
		gone.Dead = state.Totals.Dead
	}
	if err := removeProcessor(ctx, s.client, state, c.Bool("dead")); err != nil {
		return err
	}
	return s.out.line(gone, "%s removed; %d events unprocessed, %d parked, %d dead letters removed", name, gone.Lag, gone.Parked, gone.Dead)
}

// pythonRuns reports whether Python's runnel runs a processor. Then nothing of it is
// ours but its registration.
func pythonRuns(members []inspect.MemberState) bool {
	return slices.ContainsFunc(members, func(m inspect.MemberState) bool { return m.Alive && m.Worker == inspect.PythonWorker })
}

// removeProcessor takes the processor out of the metadata last: until then the
// command finds it, and may be repeated. A worker that starts it meanwhile holds
// locks, which ends the removal, or registers it again.
func removeProcessor(ctx context.Context, client *rstream.Client, p *inspect.ProcessorState, dead bool) error {
	for _, s := range p.Partitions {
		err := client.Forget(ctx, client.Place(p.Stream, p.Processor, s.Partition), dead)
		switch {
		case errors.Is(err, rstream.ErrHeld):
			return fmt.Errorf("%s/%s partition %d has an owner: stop its worker, or wait until its lock has expired, and repeat", p.Stream, p.Processor, s.Partition)
		case err != nil:
			return err
		}
	}
	if err := client.ForgetMembers(ctx, p.Stream, p.Processor); err != nil {
		return err
	}
	_, err := client.Unregister(ctx, p.Stream, p.Processor)
	return err
}
