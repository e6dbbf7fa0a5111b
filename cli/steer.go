package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/rebalance"
)

const (
	flagUnpin = "unpin"

	// drainPoll is how often `drain --wait` looks.
	drainPoll = 100 * time.Millisecond
)

func (p *program) move() *cli.Command {
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

func (p *program) drain() *cli.Command {
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

func (p *program) undrain() *cli.Command {
	return p.command(&cli.Command{
		Name:      "undrain",
		Usage:     "give a drained worker its share again",
		ArgsUsage: "WORKER [STREAM/PROCESSOR]",
		Action:    p.action(drainWorker(true)),
	},
		"PROG workers undrain web-1")
}

// steered is what `processor move` and `workers drain` tell of a processor.
type steered struct {
	Stream     string               `json:"stream"`
	Processor  string               `json:"processor"`
	Generation int64                `json:"generation"` // of the membership that says so
	Pins       map[int]string       `json:"pins,omitempty"`
	Cordons    map[string]time.Time `json:"cordons,omitempty"`
}

func (s *session) steer(ctx context.Context, stream, processor string, change func(rebalance.Group) (rebalance.Group, error)) (steered, rebalance.Group, error) {
	g, err := rebalance.Steer(ctx, s.client.Group(stream, processor), change)
	if err != nil {
		return steered{}, g, fmt.Errorf("stream %s: processor %s: %w", stream, processor, err)
	}
	return steered{stream, processor, g.Generation, g.Pins, g.Cordons}, g, nil
}

func runMove(ctx context.Context, s *session, c *cli.Context) error {
	stream, processor, ok := strings.Cut(c.Args().First(), "/")
	unpin := c.Bool(flagUnpin)
	if !ok || stream == "" || processor == "" || c.Args().Get(1) == "" || unpin && c.NArg() != 2 || !unpin && c.NArg() != 3 {
		return usagef(c, "say STREAM/PROCESSOR, partitions such as 0-3,7, and a worker or --unpin")
	}
	meta, err := s.registered(ctx, stream, processor)
	if err != nil {
		return err
	}
	numbers, err := numbersOf(c.Args().Get(1), meta.Partitions)
	if err != nil {
		return usagef(c, "%w", err)
	}
	worker := ""
	if !unpin {
		_, members, err := inspect.Members(ctx, s.client, stream, processor)
		if err != nil {
			return err
		}
		if worker, err = workerOf(members, c.Args().Get(2)); err != nil {
			return fmt.Errorf("stream %s: processor %s: %w", stream, processor, err)
		}
	}
	done, _, err := s.steer(ctx, stream, processor, func(g rebalance.Group) (rebalance.Group, error) {
		return g.Pin(rebalance.Salt(stream, processor), worker, numbers...)
	})
	if err != nil {
		return err
	}
	if unpin {
		return s.out.line(done, "%s/%s: partitions %s are not pinned any more", stream, processor, rebalance.Ranges(numbers))
	}
	return s.out.line(done, "%s/%s: partitions %s are pinned to worker %s", stream, processor, rebalance.Ranges(numbers), worker)
}

// workerOf finds a member by the name of its worker or by its executor ID.
func workerOf(members []inspect.MemberState, name string) (string, error) {
	var there []string
	for _, m := range members {
		if m.Worker == name || m.Executor == name {
			return m.Worker, nil
		}
		there = append(there, m.Worker)
	}
	return "", noWorker(name, there)
}

func noWorker(name string, there []string) error {
	if len(there) == 0 {
		return fmt.Errorf("no worker %q: none runs", name)
	}
	slices.Sort(there)
	return fmt.Errorf("no worker %q; there is %s", name, strings.Join(slices.Compact(there), ", "))
}

// drainWorker is drain, and undrain.
func drainWorker(end bool) func(context.Context, *session, *cli.Context) error {
	return func(ctx context.Context, s *session, c *cli.Context) error { return runDrain(ctx, s, c, end) }
}

func runDrain(ctx context.Context, s *session, c *cli.Context, end bool) error {
	name := c.Args().First()
	if name == "" || c.NArg() > 2 || c.NArg() == 2 && strings.Index(c.Args().Get(1), "/") < 1 {
		return usagef(c, "say a worker, and STREAM/PROCESSOR if it is not about all of them")
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	found, err := s.drained(ctx, name, c.Args().Get(1), end)
	if err != nil {
		return err
	}
	at := time.Now().UTC().Truncate(time.Millisecond) // as it is stored
	if end {
		at = time.Time{}
	}
	var all []steered
	kept := 0
	for _, f := range found {
		one, g, err := s.steer(ctx, f.stream, f.processor, func(g rebalance.Group) (rebalance.Group, error) {
			return g.Cordon(rebalance.Salt(f.stream, f.processor), f.worker, at), nil
		})
		if err != nil {
			return err
		}
		all = append(all, one)
		for _, e := range g.Executors {
			if e.Worker == f.worker {
				kept += len(e.Partitions)
			}
		}
	}
	if !end && c.Bool(flagWait) {
		if err := s.awaitDrained(ctx, found); err != nil {
			return err
		}
	}
	worker, of := found[0].worker, plural(len(all), "processor")
	switch {
	case end:
		return s.out.line(all, "worker %s gets its share of %s again", worker, of)
	case kept > 0:
		err := s.out.line(all, "worker %s is drained for %s, and keeps %s: pinned to it, or every worker is drained", worker, of, plural(kept, "partition"))
		if err == nil && !end && c.Bool(flagWait) {
			return exitThreshold // it was to own nothing
		}
		return err
	}
	return s.out.line(all, "worker %s gets no partitions of %s any more", worker, of)
}

// A drainee is a worker as one processor knows it.
type drainee struct{ stream, processor, worker string }

// drained finds the memberships that a drain is about: those in which the worker is a
// member, to end it also those in which it is drained.
func (s *session) drained(ctx context.Context, name, only string, end bool) (found []drainee, err error) {
	stream, processor, _ := strings.Cut(only, "/")
	state, err := s.look(ctx, only, 0)
	if err != nil {
		return nil, err
	}
	var there []string
	for _, st := range state.Streams {
		for _, p := range st.Processors {
			if only != "" && (p.Stream != stream || p.Processor != processor) {
				continue
			}
			worker, err := workerOf(p.Members, name)
			if _, is := p.Cordons[name]; err != nil && is && end {
				worker, err = name, nil
			}
			if err == nil {
				found = append(found, drainee{p.Stream, p.Processor, worker})
			}
			for _, m := range p.Members {
				there = append(there, m.Worker)
			}
		}
	}
	if len(found) == 0 {
		return nil, noWorker(name, there)
	}
	return found, nil
}

// awaitDrained waits until the workers own nothing but what is pinned to them.
func (s *session) awaitDrained(ctx context.Context, found []drainee) error {
	far, most := s.progress(), 0
	defer far.clear()
	for len(found) > 0 {
		f := found[0]
		p, err := inspect.Processor(ctx, s.client, f.stream, f.processor, 0)
		if err != nil {
			return err
		}
		owned := 0
		for _, part := range p.Partitions {
			if part.Err != "" {
				return fmt.Errorf("partition %d cannot be looked at: %s", part.Partition, part.Err)
			}
			if part.Worker == f.worker && p.Pins[part.Partition] != f.worker {
				owned++
			}
		}
		most = max(most, owned)
		far.of("given up by "+f.worker+" in "+f.stream+"/"+f.processor+":", int64(most-owned), int64(most))
		if owned == 0 {
			found, most = found[1:], 0
			continue
		}
		if _, is := p.Cordons[f.worker]; !is {
			return fmt.Errorf("%s/%s: worker %s is not drained any more: somebody ended that", f.stream, f.processor, f.worker)
		}
		if !slices.ContainsFunc(p.Members, func(m inspect.MemberState) bool { return m.Drained == nil }) {
			return fmt.Errorf("%s/%s: every worker is drained, so that each has its share: start another one, or end one of the drains", f.stream, f.processor)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(drainPoll):
		}
	}
	return nil
}
