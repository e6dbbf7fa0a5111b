package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/words"
)

const (
	flagTo         = "to"
	flagPartitions = "partitions"
	flagExport     = "export"
	flagImport     = "import"
)

func processorCommand(p *program) *cli.Command {
	reset := p.command(&cli.Command{
		Name:      "reset",
		Usage:     "set the position of a processor, while no worker runs it",
		ArgsUsage: "STREAM/PROCESSOR",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: flagTo, Aliases: []string{"start"}, Usage: "`POSITION`: start, end, an entry ID, that of one partition (3/ID), @TIME, a time ago (-1h), a number of events back or on (-100, +1); what comes behind it is processed (again)"},
			&cli.StringFlag{Name: flagPartitions, DefaultText: "all", Usage: "only these `PARTITIONS`, such as 0-3,7"},
			&cli.StringFlag{Name: flagExport, Usage: "write where it stands (before) to this `FILE`, - for stdout"},
			&cli.StringFlag{Name: flagImport, Usage: "set the positions of this `FILE`, in the place of --to"},
			dryRunFlag(),
			yesFlag(),
		},
		Action: p.action(runReset),
	},
		"PROG processor reset orders/printer --to start",
		"PROG processor reset orders/printer --to -1h --dry-run",
		"PROG processor reset orders/printer --to @2026-01-31T08:00:00Z --partitions 0-3,7",
		"PROG processor reset orders/printer --to -100 --export before.json",
		"PROG processor reset orders/printer --import before.json",
		"PROG processor reset orders/printer --to 1767225600000-0   # what was sent since 2026-01-01 00:00 UTC")
	return p.group("processor", "look after a processor", processorLsCommand(p), processorInfoCommand(p), moveCommand(p), reset, removeCommand(p))
}

func runReset(ctx context.Context, s *session, c *cli.Context) error {
	stream, processor, err := processorArgument(c)
	if err != nil {
		return err
	}
	to, err := resetGoal(c)
	if err != nil {
		return err
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	if err := s.admin.CheckScope(ctx, admin.ProcessorScope(stream, processor)); err != nil {
		return err
	}
	st, err := s.admin.Stream(ctx, stream)
	if err != nil {
		return err
	}
	at := s.admin.Positions(stream, processor)
	goal, numbers, err := s.resetArgs(c, to, stream, st.Partitions)
	if err != nil {
		return err
	}
	if path := c.String(flagExport); path != "" {
		if err := s.export(ctx, at, path, positions{1, s.app.Name(), stream, processor, nil}, numbers); err != nil || goal == nil && to == "" {
			return err
		}
	}
	if goal == nil {
		if goal, err = at.Find(ctx, to, numbers...); err != nil {
			return err
		}
	}
	if c.Bool(flagDryRun) {
		moves, err := at.Preview(ctx, goal)
		if err != nil {
			return err
		}
		return s.out.write(moves, func(w io.Writer) error { return writeMoves(w, moves) })
	}
	if err := s.confirm(c, "Set the position of %s/%s in %s?", stream, processor, words.Plural(len(goal), "partition")); err != nil {
		return err
	}
	moves, err := at.Set(ctx, goal)
	s.far.done()
	if len(moves) > 0 {
		did := fmt.Sprintf("set the position of %s/%s in %s", stream, processor, words.Plural(len(moves), "partition"))
		err = errors.Join(err, unwritten(did, s.out.write(moves, func(w io.Writer) error { return writeMoves(w, moves) })))
	}
	return err
}

// resetGoal reads what --to says, "" where it says nothing, and whether the flags go
// together.
func resetGoal(c *cli.Context) (string, error) {
	for _, name := range []string{flagTo, flagImport, flagExport, flagPartitions} {
		if c.IsSet(name) && c.String(name) == "" {
			return "", usagef(c, "--%s says nothing", name)
		}
	}
	if to, from := c.IsSet(flagTo), c.IsSet(flagImport); to && from || !to && !from && !c.IsSet(flagExport) {
		return "", usagef(c, "say where with one of --to and --import, or --export alone")
	}
	to := c.String(flagTo)
	if to == "" {
		return "", nil
	}
	if err := admin.CheckPosition(to); err != nil {
		return "", usagef(c, "--to: %w", err)
	}
	if _, _, one := entryid.ParseEventID(to); one && c.IsSet(flagPartitions) {
		return "", usagef(c, "--to says which partition")
	}
	return to, nil
}

// resetArgs reads in which partitions the processor is to stand elsewhere, and where
// if a file says so.
func (s *session) resetArgs(c *cli.Context, to, stream string, partitions int) (map[int]string, []int, error) {
	if path := c.String(flagImport); path != "" {
		if c.IsSet(flagPartitions) {
			return nil, nil, usagef(c, "--import says which partitions")
		}
		goal, err := imported(path, s.app.Name(), stream, partitions)
		return goal, slices.Sorted(maps.Keys(goal)), err
	}
	if n, _, one := entryid.ParseEventID(to); one {
		if n >= partitions {
			return nil, nil, noPartition(stream, n, partitions)
		}
		return nil, []int{n}, nil
	}
	numbers, err := numbersOf(c.String(flagPartitions), partitions)
	if err != nil {
		return nil, nil, usagef(c, "--partitions: %w", err)
	}
	return nil, numbers, nil
}

func writeMoves(w io.Writer, moves []admin.Move) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PARTITION\tOLD\t\tNEW")
	for _, m := range moves {
		printf(t, "%d\t%s\t→\t%s\n", m.Partition, m.Old, m.New)
	}
	return t.Flush()
}
