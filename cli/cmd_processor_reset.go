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
	flagRows       = "rows"
)

func resetCommand(p *program) *cobra.Command {
	return p.command("reset STREAM/PROCESSOR", "set the position of a processor, while no worker runs it", flagList{
		newFlag(flagTo, "", "`POSITION`: start, end, an entry ID, that of one partition (3/ID), @TIME, a time ago (-1h), a number of events back or on (-100, +1); what comes behind it is processed (again)"),
		newFlag(flagPartitions, "", "only these `PARTITIONS`, such as 0-3,7 (default all)"),
		newFlag(flagExport, "", "write the positions before the reset to this `FILE`, - for stdout"),
		newFlag(flagImport, "", "set the positions of this `FILE`, instead of --to"),
		newFlag(flagRows, "", "`WHAT` becomes of the rows of its tables: keep, or clear in the partitions that are set; needed where it has tables"),
		dryRunFlag(),
		yesFlag(),
	}, runReset,
		"PROG processor reset orders/printer --to start",
		"PROG processor reset orders/sum --to start --rows clear",
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
	at, err := s.positions(ctx, c)
	if err != nil {
		return err
	}
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
	question := "Set the position of %s/%s in %s?"
	if c.String(flagRows) == clearRows {
		question = "Set the position of %s/%s in %s, and remove the rows of its tables there?"
	}
	if err := s.confirm(c, question, s.stream, s.processor, words.Plural(len(goal), "partition")); err != nil {
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

const (
	keepRows  = "keep"
	clearRows = "clear"
)

// positions are those of the processor, with what --rows says. Where the processor has tables it must say something.
func (s *session) positions(ctx context.Context, c *call) (*admin.Positions, error) {
	at := s.admin.Positions(s.stream, s.processor)
	switch rows := c.String(flagRows); {
	case rows == keepRows:
		return at.WithRows(admin.KeepRows), nil
	case rows == clearRows:
		return at.WithRows(admin.ClearRows), nil
	case c.IsSet(flagRows):
		return nil, usagef(c, "--rows is %s or %s", keepRows, clearRows)
	case !c.IsSet(flagTo) && !c.IsSet(flagImport):
		return at, nil
	}
	m, err := s.metadata(ctx, s.stream)
	if tables := m.TablesOf(s.processor); err == nil && len(tables) > 0 {
		err = usagef(c, "%w: say --rows %s or --rows %s", &admin.RowsError{Stream: s.stream, Processor: s.processor, Tables: tables}, keepRows, clearRows)
	}
	return at, err
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
	title, cleared := "PARTITION\tOLD\t\tNEW", slices.ContainsFunc(moves, func(m admin.Move) bool { return m.Rows > 0 })
	if cleared {
		title += "\tROWS CLEARED"
	}
	fmt.Fprintln(t, title)
	for _, m := range moves {
		cells := []any{m.Partition, m.Old, "→", m.New}
		if cleared {
			cells = append(cells, m.Rows)
		}
		t.row(cells...)
	}
}
