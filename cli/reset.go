package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
)

// resetExpiry is how long a reset that died keeps workers from its partitions,
// if they do not cut it down to their own expiry, as they do.
const resetExpiry = 30 * time.Second

const (
	flagTo         = "to"
	flagPartitions = "partitions"
	flagExport     = "export"
	flagImport     = "import"
)

func (p *program) processor() *cli.Command {
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
	return p.group("processor", "look after a processor", p.processorLs(), p.processorInfo(), p.move(), reset, p.remove())
}

// moved is what `processor reset` tells of a partition.
type moved struct {
	Partition int    `json:"partition"`
	Old       string `json:"old"` // everything up to here was done
	New       string `json:"new"`
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
	state, err := inspect.Stream(ctx, s.client, stream, 0)
	if err != nil {
		return err
	}
	if state == nil {
		return s.noStream(ctx, stream)
	}
	at := slices.IndexFunc(state.Processors, func(p inspect.ProcessorState) bool { return p.Processor == processor })
	if at < 0 {
		return noProcessor(state, processor)
	}
	to, numbers, err := s.resetArgs(c, to, stream, state.Partitions)
	if err != nil {
		return err
	}
	if path := c.String(flagExport); path != "" {
		if err := export(path, s.stdout, s.app.Name(), &state.Processors[at], numbers); err != nil || to == nil {
			return err
		}
	}
	if err := to.settle(ctx, s.client, &state.Processors[at], numbers); err != nil {
		return err
	}
	r := &reset{far: s.progress(), client: s.client, stream: stream, processor: processor, tenure: store.Claim{Executor: store.NewExecutorID(), Number: 1}}
	if c.Bool(flagDryRun) {
		moves, err := preview(state.Processors[at].Partitions, numbers, to)
		if err != nil {
			return err
		}
		return s.out.write(moves, func(w io.Writer) error { return writeMoves(w, moves) })
	}
	if err := s.confirm(c, "Set the position of %s/%s in %s?", stream, processor, plural(len(numbers), "partition")); err != nil {
		return err
	}
	moves, err := r.run(ctx, numbers, to)
	if len(moves) > 0 {
		did := fmt.Sprintf("set the position of %s/%s in %s", stream, processor, plural(len(moves), "partition"))
		err = errors.Join(err, unwritten(did, s.out.write(moves, func(w io.Writer) error { return writeMoves(w, moves) })))
	}
	return err
}

// resetGoal reads what --to says, nil where it says nothing, and whether the flags go
// together.
func resetGoal(c *cli.Context) (*goal, error) {
	for _, name := range []string{flagTo, flagImport, flagExport, flagPartitions} {
		if c.IsSet(name) && c.String(name) == "" {
			return nil, usagef(c, "--%s says nothing", name)
		}
	}
	if to, from := c.IsSet(flagTo), c.IsSet(flagImport); to && from || !to && !from && !c.IsSet(flagExport) {
		return nil, usagef(c, "say where with one of --to and --import, or --export alone")
	}
	if !c.IsSet(flagTo) {
		return nil, nil
	}
	to, err := parseGoal(c.String(flagTo))
	if err != nil {
		return nil, usagef(c, "--to: %w", err)
	}
	return to, nil
}

// resetArgs reads in which partitions the processor is to stand elsewhere, and where
// if a file says so.
func (s *session) resetArgs(c *cli.Context, to *goal, stream string, partitions int) (*goal, []int, error) {
	if path := c.String(flagImport); path != "" {
		if c.IsSet(flagPartitions) {
			return nil, nil, usagef(c, "--import says which partitions")
		}
		return imported(path, s.app.Name(), stream, partitions)
	}
	if to != nil && to.of != nil {
		numbers := slices.Collect(maps.Keys(to.of))
		switch {
		case c.IsSet(flagPartitions):
			return nil, nil, usagef(c, "--to says which partition")
		case numbers[0] >= partitions:
			return nil, nil, noPartition(stream, numbers[0], partitions)
		}
		return to, numbers, nil
	}
	numbers, err := numbersOf(c.String(flagPartitions), partitions)
	if err != nil {
		return nil, nil, usagef(c, "--partitions: %w", err)
	}
	return to, numbers, nil
}

func writeMoves(w io.Writer, moves []moved) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PARTITION\tOLD\t\tNEW")
	for _, m := range moves {
		printf(t, "%d\t%s\t→\t%s\n", m.Partition, m.Old, m.New)
	}
	return t.Flush()
}

// A reset owns the partitions of a processor for the moment that it takes.
type reset struct {
	client            *store.Client
	stream, processor string
	tenure            store.Claim
	held              []store.Partition
	far               *progress
}

// preview says what run would do now.
func preview(partitions []inspect.PartitionState, numbers []int, to *goal) ([]moved, error) {
	moves := []moved{}
	for _, n := range numbers {
		s := partitions[n]
		if s.Err != "" {
			return nil, fmt.Errorf("partition %d cannot be looked at: %s", n, s.Err)
		}
		id := to.in(n)
		if s.End != "" && (id == "$" || entryid.Compare(id, s.End) > 0) { // else it is not known
			id = s.End
		}
		moves = append(moves, moved{n, s.Floor, id})
	}
	return moves, nil
}

// run sets the position of these partitions. Nothing is changed before all are
// locked; an error later, which the moves made so far come with, leaves the
// others where they were.
//
// The members are looked at twice, for a worker may start at any time:
//
//  1. nobody is a member, the reset begins to lock partitions;
//  2. a worker joins, and takes a partition that is not yet locked: then its
//     lock is in the way. Or it waits for one that is: then it is found by the
//     second look, and everything is given back as it was;
//  3. a worker that joins after the second look waits for the locks, and begins
//     where the reset put the position.
func (r *reset) run(ctx context.Context, numbers []int, to *goal) (moves []moved, err error) {
	if err := r.nobodyAlive(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.unlock(ctx)) }()
	defer r.far.clear()
	for i, n := range numbers {
		r.far.of("locked", int64(i), int64(len(numbers)))
		if err := r.lock(ctx, r.client.Partition(r.stream, r.processor, n)); err != nil {
			return nil, err
		}
	}
	if err := r.nobodyAlive(ctx); err != nil {
		return nil, err
	}
	for i, p := range r.held {
		r.far.of("set the position of", int64(i), int64(len(r.held)))
		old, err := r.client.Takeover(ctx, p, r.tenure, "", 0)
		if err != nil {
			return moves, err
		}
		floor, err := r.client.Reset(ctx, p, r.tenure, to.in(p.Number))
		if err != nil {
			return moves, err
		}
		moves = append(moves, moved{p.Number, old.Committed, floor})
	}
	return moves, nil
}

// nobodyAlive refuses while a worker runs the processor.
func (r *reset) nobodyAlive(ctx context.Context) error {
	_, members, err := inspect.Members(ctx, r.client, r.stream, r.processor)
	if err != nil {
		return err
	}
	var alive []string
	for _, m := range members {
		if m.Alive {
			alive = append(alive, fmt.Sprintf("%s (%s)", m.Worker, m.Executor))
		}
	}
	if len(alive) > 0 {
		return fmt.Errorf("stream %s: processor %s runs on %s: stop these workers first; nothing was changed", r.stream, r.processor, strings.Join(alive, ", "))
	}
	return nil
}

func (r *reset) lock(ctx context.Context, p store.Partition) error {
	err := r.client.Lock(ctx, p, r.tenure, resetExpiry, 0)
	if !errors.Is(err, store.ErrHeld) {
		r.held = append(r.held, p) // of an unknown outcome too: it may be ours
		return err
	}
	views, viewErr := r.client.Views(ctx, []store.Partition{p})
	if viewErr != nil || views[0].Owner == "" {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	return fmt.Errorf("stream %s partition %d: processor %s: owned by executor %s, whose lock expires in %s: stop its worker, or wait; nothing was changed",
		r.stream, p.Number, r.processor, views[0].Owner, shortly(views[0].LockLeft))
}

// unlock gives the partitions back, also when ctx has ended.
func (r *reset) unlock(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resetExpiry)
	defer cancel()
	var errs []error
	for _, p := range r.held {
		if err := r.client.Unlock(ctx, p, r.tenure); err != nil {
			errs = append(errs, fmt.Errorf("%w; the lock expires in %s", err, resetExpiry))
		}
	}
	return errors.Join(errs...)
}
