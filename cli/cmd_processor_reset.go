package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

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

func resetCommand(p *program) *cobra.Command {
	return p.command("reset STREAM/PROCESSOR", "set the position of a processor, while no worker runs it", flagList{
		newFlag(flagTo, "", "`POSITION`: start, end, an entry ID, that of one partition (3/ID), @TIME, a time ago (-1h), a number of events back or on (-100, +1); what comes behind it is processed (again)"),
		newFlag(flagPartitions, "", "only these `PARTITIONS`, such as 0-3,7 (default all)"),
		newFlag(flagExport, "", "write the positions before the reset to this `FILE`, - for stdout"),
		newFlag(flagImport, "", "set the positions of this `FILE`, instead of --to"),
		dryRunFlag(),
		yesFlag(),
	}, runReset,
		"PROG processor reset orders/printer --to start",
		"PROG processor reset orders/printer --to -1h --dry-run",
		"PROG processor reset orders/printer --to @2026-01-31T08:00:00Z --partitions 0-3,7",
		"PROG processor reset orders/printer --to -100 --export before.json",
		"PROG processor reset orders/printer --import before.json",
		"PROG processor reset orders/printer --to 1767225600000-0   # what was sent since 2026-01-01 00:00 UTC")
}

func runReset(ctx context.Context, s *session, c *call) error {
	to, err := resetGoal(c)
	if err != nil {
		return err
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	if err := s.admin.CheckScope(ctx, admin.ProcessorScope(s.stream, s.processor)); err != nil {
		return err
	}
	st, err := s.admin.Stream(ctx, s.stream)
	if err != nil {
		return err
	}
	at := s.admin.Positions(s.stream, s.processor)
	goal, numbers, err := resetArgs(s, c, to, st.Partitions)
	if err != nil {
		return err
	}
	if path := c.String(flagExport); path != "" {
		all := positions{Version: 1, App: s.app.Name(), Stream: s.stream, Processor: s.processor}
		if all.Positions, err = at.List(ctx, numbers...); err == nil {
			err = all.export(path, s.stdout)
		}
		if err != nil || goal == nil && to == "" {
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
		return s.out.table(moves, func(t table) { writeMoves(t, moves) })
	}
	if err := s.confirm(c, "Set the position of %s/%s in %s?", s.stream, s.processor, words.Plural(len(goal), "partition")); err != nil {
		return err
	}
	moves, err := at.Set(ctx, goal)
	s.far.done()
	if len(moves) > 0 {
		did := fmt.Sprintf("set the position of %s/%s in %s", s.stream, s.processor, words.Plural(len(moves), "partition"))
		err = errors.Join(err, unwritten(did, s.out.table(moves, func(t table) { writeMoves(t, moves) })))
	}
	return err
}

// resetGoal returns --to, "" without it, and refuses flags that exclude each other.
func resetGoal(c *call) (string, error) {
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

// resetArgs returns the partitions to reset, and their new positions if --import gives them.
func resetArgs(s *session, c *call, to string, partitions int) (map[int]string, []int, error) {
	if path := c.String(flagImport); path != "" {
		if c.IsSet(flagPartitions) {
			return nil, nil, usagef(c, "--import says which partitions")
		}
		goal, err := imported(path, s.app.Name(), s.stream, partitions)
		return goal, slices.Sorted(maps.Keys(goal)), err
	}
	if n, _, one := entryid.ParseEventID(to); one {
		if n >= partitions {
			return nil, nil, noPartition(s.stream, n, partitions)
		}
		return nil, []int{n}, nil
	}
	numbers, err := numbersOf(c.String(flagPartitions), partitions)
	if err != nil {
		return nil, nil, usagef(c, "--partitions: %w", err)
	}
	return nil, numbers, nil
}

func writeMoves(t table, moves []admin.Move) {
	fmt.Fprintln(t, "PARTITION\tOLD\t\tNEW")
	for _, m := range moves {
		t.row(m.Partition, m.Old, "→", m.New)
	}
}
