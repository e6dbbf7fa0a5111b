package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/rstream"
)

// resetExpiry is how long a reset that died keeps workers from its partitions,
// if they do not cut it down to their own expiry, as they do.
const resetExpiry = 30 * time.Second

func (p *program) processor() *cli.Command {
	reset := p.command(&cli.Command{
		Name:      "reset",
		Usage:     "set the position of a processor in every partition, while no worker runs it",
		ArgsUsage: "STREAM/PROCESSOR",
		Flags: []cli.Flag{&cli.StringFlag{Name: "to", Aliases: []string{"start"},
			Usage: "`POSITION`: start, end, or an entry ID; what comes behind it is processed (again)"}},
		Action: p.action(runReset),
	},
		"PROG processor reset orders/printer --to start",
		"PROG processor reset orders/printer --to end",
		"PROG processor reset orders/printer --to 1767225600000-0   # what was sent since 2026-01-01 00:00 UTC")
	return p.group("processor", "look after a processor", append([]*cli.Command{p.processorLs(), reset, p.resume(), p.remove()}, p.ruleCommands()...)...)
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
	to, err := parsePosition(c.String("to"))
	if err != nil {
		return usagef(c, "--to: %w", err)
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
	if !slices.ContainsFunc(state.Processors, func(p inspect.ProcessorState) bool { return p.Processor == processor }) {
		return noProcessor(state, processor)
	}
	r := &reset{client: s.client, stream: stream, processor: processor, tenure: rstream.Tenure{Executor: rstream.NewExecutorID(), Number: 1}}
	moves, err := r.run(ctx, state.Partitions, to)
	if len(moves) > 0 {
		err = errors.Join(err, s.out.write(moves, func(w io.Writer) error { return writeMoves(w, moves) }))
	}
	return err
}

func writeMoves(w io.Writer, moves []moved) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PARTITION\tOLD\t\tNEW")
	for _, m := range moves {
		fmt.Fprintf(t, "%d\t%s\t→\t%s\n", m.Partition, m.Old, m.New)
	}
	return t.Flush()
}

var entryID = regexp.MustCompile(`^([0-9]+)(?:-([0-9]+))?$`)

// parsePosition returns a floor: an entry ID, or "$" for the end.
func parsePosition(s string) (string, error) {
	switch s {
	case "":
		return "", errors.New("say start, end, or an entry ID")
	case "start":
		return "0-0", nil
	case "end":
		return "$", nil
	}
	m := entryID.FindStringSubmatch(s)
	if m == nil {
		return "", fmt.Errorf("%q is neither start, end, nor an entry ID", s)
	}
	var parts [2]uint64
	for i, digits := range m[1:] {
		if digits == "" {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 64)
		if err != nil {
			return "", fmt.Errorf("entry ID %q: %s is too large", s, digits)
		}
		parts[i] = n
	}
	return fmt.Sprintf("%d-%d", parts[0], parts[1]), nil
}

// A reset owns the partitions of a processor for the moment that it takes.
type reset struct {
	client            *rstream.Client
	stream, processor string
	tenure            rstream.Tenure
	held              []rstream.Place
}

// run sets the position of every partition. Nothing is changed before all are
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
func (r *reset) run(ctx context.Context, partitions int, to string) (moves []moved, err error) {
	if err := r.nobodyAlive(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.unlock(ctx)) }()
	for i := range partitions {
		if err := r.lock(ctx, r.client.Place(r.stream, r.processor, i)); err != nil {
			return nil, err
		}
	}
	if err := r.nobodyAlive(ctx); err != nil {
		return nil, err
	}
	for _, p := range r.held {
		old, err := r.client.Takeover(ctx, p, r.tenure, "", 0)
		if err != nil {
			return moves, err
		}
		floor, err := r.client.Reset(ctx, p, r.tenure, to)
		if err != nil {
			return moves, err
		}
		moves = append(moves, moved{p.Partition, old.Floor, floor})
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

func (r *reset) lock(ctx context.Context, p rstream.Place) error {
	err := r.client.Lock(ctx, p, r.tenure, resetExpiry, 0)
	if !errors.Is(err, rstream.ErrHeld) {
		r.held = append(r.held, p) // of an unknown outcome too: it may be ours
		return err
	}
	views, viewErr := r.client.Views(ctx, []rstream.Place{p})
	if viewErr != nil || views[0].Owner == "" {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	return fmt.Errorf("stream %s partition %d: processor %s: owned by executor %s, whose lock expires in %s: stop its worker, or wait; nothing was changed",
		r.stream, p.Partition, r.processor, views[0].Owner, shortly(views[0].LockLeft))
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
