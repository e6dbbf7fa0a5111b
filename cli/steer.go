package cli

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/words"
	"github.com/runnel-go/runnel/rebalance"
)

const (
	flagUnpin = "unpin"
)

func moveCommand(p *program) *cli.Command {
	return p.command(&cli.Command{
		Name:      "move",
		Usage:     "pin partitions to a worker, for as long as it is there: whatever else moves, these do not",
		ArgsUsage: "STREAM/PROCESSOR PARTITIONS [WORKER]",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: flagUnpin, DisableDefaultText: true, Usage: "remove the pins: the partitions may go where they like"},
		},
		Action: p.action(runMove),
	},
		"PROG processor move orders/printer 3,7 web-1",
		"PROG processor move orders/printer 0-3 web-1",
		"PROG processor move orders/printer 0-15 --unpin")
}

func drainCommand(p *program) *cli.Command {
	return p.command(&cli.Command{
		Name:      "drain",
		Usage:     "take all partitions from a worker, and give it no others, until undrain",
		ArgsUsage: "WORKER [STREAM/PROCESSOR]",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: flagWait, DisableDefaultText: true, Usage: "return when it owns nothing any more; code 3 if it keeps partitions"},
		},
		Action: p.action(drainWorker(false)),
	},
		"PROG workers drain web-1 --wait",
		"PROG workers drain web-1 orders/printer")
}

func undrainCommand(p *program) *cli.Command {
	return p.command(&cli.Command{
		Name:      "undrain",
		Usage:     "give a drained worker its share again",
		ArgsUsage: "WORKER [STREAM/PROCESSOR]",
		Action:    p.action(drainWorker(true)),
	},
		"PROG workers undrain web-1")
}

func runMove(ctx context.Context, s *session, c *cli.Context) error {
	stream, processor, ok := strings.Cut(c.Args().First(), "/")
	unpin := c.Bool(flagUnpin)
	if !ok || stream == "" || processor == "" || c.Args().Get(1) == "" || unpin && c.NArg() != 2 || !unpin && c.NArg() != 3 {
		return usagef(c, "say STREAM/PROCESSOR, partitions such as 0-3,7, and a worker or --unpin")
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	st, err := s.admin.Stream(ctx, stream)
	if err != nil {
		return err
	}
	numbers, err := numbersOf(c.Args().Get(1), st.Partitions)
	if err != nil {
		return usagef(c, "%w", err)
	}
	var done admin.Assignment
	if unpin {
		done, err = s.admin.Workers().Unpin(ctx, stream, processor, numbers...)
	} else {
		done, err = s.admin.Workers().Pin(ctx, admin.WorkerOf{Name: c.Args().Get(2), Stream: stream, Processor: processor}, numbers...)
	}
	if err != nil {
		return err
	}
	if unpin {
		return s.out.line(done, "%s/%s: partitions %s are not pinned any more", stream, processor, rebalance.Ranges(numbers))
	}
	return s.out.line(done, "%s/%s: partitions %s are pinned to worker %s", stream, processor, rebalance.Ranges(numbers), done.Worker)
}

// drainWorker is drain, and undrain.
func drainWorker(end bool) func(context.Context, *session, *cli.Context) error {
	return func(ctx context.Context, s *session, c *cli.Context) error { return runDrain(ctx, s, c, end) }
}

func runDrain(ctx context.Context, s *session, c *cli.Context, end bool) error {
	name := c.Args().First()
	if name == "" || c.NArg() > 2 || c.NArg() == 2 && (strings.Index(c.Args().Get(1), "/") < 1 || strings.HasSuffix(c.Args().Get(1), "/")) {
		return usagef(c, "say a worker, and STREAM/PROCESSOR if it is not about all of them")
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	w := admin.WorkerOf{Name: name}
	w.Stream, w.Processor, _ = strings.Cut(c.Args().Get(1), "/")
	change := s.admin.Workers().Drain
	if end {
		change = s.admin.Workers().Undrain
	}
	all, err := change(ctx, w)
	if err != nil {
		return err
	}
	kept := 0
	for _, one := range all {
		kept += one.Keeps
	}
	if !end && c.Bool(flagWait) {
		if err := s.admin.Workers().AwaitDrained(ctx, all); err != nil {
			return err
		}
		s.far.done()
	}
	worker, of := all[0].Worker, words.Plural(len(all), "processor")
	switch {
	case end:
		return s.out.line(all, "worker %s gets its share of %s again", worker, of)
	case kept > 0:
		err := s.out.line(all, "worker %s is drained for %s, and keeps %s: pinned to it, or every worker is drained", worker, of, words.Plural(kept, "partition"))
		if err == nil && !end && c.Bool(flagWait) {
			return exitThreshold // it was to own nothing
		}
		return err
	}
	return s.out.line(all, "worker %s gets no partitions of %s any more", worker, of)
}
