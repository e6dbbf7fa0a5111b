package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/rules"
	"github.com/runnel-go/runnel/internal/store"
)

const flagToPython = "to-python"

func (p *program) remove() *cli.Command {
	return p.command(&cli.Command{
		Name:      "rm",
		Usage:     "forget a processor that no worker runs any more, or another consumer group, so that trimming does not wait for it",
		ArgsUsage: "STREAM/PROCESSOR|STREAM/GROUP",
		Flags: []cli.Flag{
			yesFlag(),
			&cli.BoolFlag{Name: "dead", DisableDefaultText: true, Usage: "remove its dead letters, too"},
			&cli.BoolFlag{Name: flagToPython, DisableDefaultText: true, Usage: "leave a consumer group from which Python's runnel goes on under the same name"},
		},
		Action: p.action(runRemove),
	},
		"PROG processor rm orders/old --yes",
		"PROG processor rm orders/old --yes --dead",
		"PROG processor rm orders/printer --to-python --yes")
}

// removed is what `processor rm` tells.
type removed struct {
	Stream    string `json:"stream"`
	Processor string `json:"processor"`
	Lag       int64  `json:"lag"`    // events that it will not process
	Parked    int64  `json:"parked"` // and those that were parked
	Dead      int64  `json:"dead"`   // dead letters that were removed
	Rules     int    `json:"rules"`  // pauses and blocks of it that were removed
}

func runRemove(ctx context.Context, s *session, c *cli.Context) error {
	stream, processor, err := processorArgument(c)
	if err != nil {
		return err
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	meta, err := s.metadata(ctx, stream)
	if err != nil {
		return err
	}
	if !slices.Contains(meta.Processors, processor) {
		return runRemoveGroup(ctx, s, c, stream, processor, meta)
	}
	state, err := inspect.Processor(ctx, s.client, stream, processor, 0)
	if err != nil {
		return err
	}
	name, toPython := stream+"/"+processor, c.Bool(flagToPython)
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
	gone := removed{Stream: stream, Processor: processor, Lag: state.Totals.Lag, Parked: state.Totals.Parked}
	if toPython {
		gone.Lag = 0 // they wait for Python
	}
	if c.Bool("dead") {
		gone.Dead = state.Totals.Dead
	}
	if err := s.confirmRemoval(c, name, gone); err != nil {
		return err
	}
	forget := s.client.Forget
	if toPython {
		forget = s.client.LeaveToPython
	}
	if err := removeProcessor(ctx, s.client, s.progress(), state, c.Bool("dead"), forget); err != nil {
		return err
	}
	if toPython {
		return s.out.line(gone, "%s left to Python's runnel, with all that waits for it; %d parked, %s removed", name, gone.Parked, plural(gone.Dead, "dead letter"))
	}
	if gone.Rules, err = s.forgetRules(ctx, rules.Processor(stream, processor)); err != nil {
		return err
	}
	return s.out.line(gone, "%s removed; %s unprocessed, %d parked, %s removed%s", name, plural(gone.Lag, "event"), gone.Parked, plural(gone.Dead, "dead letter"), alsoRules(gone.Rules))
}

// forgetRules removes the rules of what was removed, so that they hold nothing back that
// gets its name later. It comes last: until then they hold.
func (s *session) forgetRules(ctx context.Context, scope rules.Scope) (int, error) {
	n, err := s.client.ForgetRules(ctx, scope)
	if err != nil {
		return n, fmt.Errorf("%s is removed, its rules are not; `%s rules ls` lists them with what ends each: %w", scope, s.prefix(), err)
	}
	return n, nil
}

func alsoRules(n int) string {
	if n == 0 {
		return ""
	}
	return ", " + plural(n, "rule")
}

// confirmRemoval asks whether what a processor leaves behind may be given up. What Python's
// runnel goes on with needs no question.
func (s *session) confirmRemoval(c *cli.Context, name string, gone removed) error {
	if !c.Bool(flagToPython) {
		return s.confirm(c, "Forget %s, with its position, %s that it has not processed, %d of them parked, and %s?",
			name, plural(gone.Lag+gone.Parked, "event"), gone.Parked, plural(gone.Dead, "dead letter"))
	}
	if gone.Parked+gone.Dead == 0 {
		return nil
	}
	return s.confirm(c, "Leave %s to Python's runnel, and give up %s and %s?", name, plural(gone.Parked, "parked event"), plural(gone.Dead, "dead letter"))
}

// runRemoveGroup lets a consumer group go that is of no registered processor.
func runRemoveGroup(ctx context.Context, s *session, c *cli.Context, stream, name string, meta store.Meta) error {
	groups, err := inspect.Groups(ctx, s.client, stream, meta)
	if err != nil {
		return err
	}
	// As it is listed, or all those of a processor that is not registered any more.
	groups = slices.DeleteFunc(groups, func(g inspect.GroupState) bool { return g.Group != name && g.Processor != name })
	if len(groups) == 0 || c.Bool(flagToPython) {
		return unknownProcessor(stream, name, meta.Processors)
	}
	gone := removed{Stream: stream, Processor: name}
	for _, g := range groups {
		if g.Alive {
			return stillRead(stream, g)
		}
		gone.Lag += max(g.Lag, 0)
	}
	err = s.confirm(c, "Destroy consumer group %s of stream %s (%s), which has not acked %s, with its position?", name, stream, groups[0].Who, plural(gone.Lag, "event"))
	if err != nil {
		return err
	}
	for _, g := range groups {
		if err := s.client.DropGroup(ctx, stream, meta.Partitions, g.Group); err != nil {
			return err
		}
	}
	return s.out.line(gone, "consumer group %s of stream %s destroyed; %s not acked", name, stream, plural(gone.Lag, "event"))
}

func stillRead(stream string, g inspect.GroupState) error {
	return fmt.Errorf("consumer group %s of stream %s is read by %s, which is running: stop it first", g.Group, stream, g.Who)
}

// foreignGroups are the consumer groups of a stream that are of no registered processor.
func (s *session) foreignGroups(ctx context.Context, stream string) ([]inspect.GroupState, error) {
	meta, err := s.metadata(ctx, stream)
	if err != nil {
		return nil, err
	}
	return inspect.Groups(ctx, s.client, stream, meta)
}

// pythonRuns reports whether Python's runnel runs a processor. Then nothing of it is
// ours but its registration.
func pythonRuns(members []inspect.MemberState) bool {
	return slices.ContainsFunc(members, func(m inspect.MemberState) bool { return m.Alive && m.Worker == inspect.PythonWorker })
}

// removeProcessor takes the processor out of the metadata last: until then the
// command finds it, and may be repeated. A worker that starts it meanwhile holds
// locks, which ends the removal, or registers it again.
func removeProcessor(ctx context.Context, client *store.Client, far *progress, p *inspect.ProcessorState, dead bool, forget func(context.Context, store.Partition, bool) error) error {
	defer far.clear()
	for i, s := range p.Partitions {
		far.of("forgot "+p.Stream+"/"+p.Processor+": partitions", int64(i), int64(len(p.Partitions)))
		err := forget(ctx, client.Partition(p.Stream, p.Processor, s.Partition), dead)
		switch {
		case errors.Is(err, store.ErrHeld):
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
