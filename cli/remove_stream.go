package cli

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/rules"
)

func (p *program) removeStream() *cli.Command {
	return p.command(&cli.Command{
		Name:      "rm",
		Usage:     "delete a stream that no worker runs any more: its events, what is delayed, its processors and their dead letters",
		ArgsUsage: "STREAM",
		Flags: []cli.Flag{
			yesFlag(),
		},
		Action: p.action(runRemoveStream),
	},
		"PROG stream rm orders --yes")
}

// removedStream is what `stream rm` tells.
type removedStream struct {
	Stream     string   `json:"stream"`
	Entries    int64    `json:"entries"`
	Delayed    int64    `json:"delayed"`
	Processors []string `json:"processors"`
	Dead       int64    `json:"dead"`  // dead letters of these
	Rules      int      `json:"rules"` // pauses and blocks of it and of its processors
}

func runRemoveStream(ctx context.Context, s *session, c *cli.Context) error {
	name := c.Args().First()
	switch {
	case name == "":
		return usagef(c, "which stream?")
	case c.NArg() > 1:
		return usagef(c, "unexpected argument %q", c.Args().Get(1))
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	state, err := inspect.Stream(ctx, s.client, name, 0)
	if err != nil {
		return err
	}
	if state == nil {
		return s.noStream(ctx, name)
	}
	gone, err := s.toRemove(ctx, state)
	if err != nil {
		return err
	}
	if err := s.confirm(c, "Delete stream %s for good, with %s, %s, %s and %s?",
		name, plural(gone.Entries, "entry"), plural(gone.Delayed, "delayed event"), plural(len(gone.Processors), "processor"), plural(gone.Dead, "dead letter")); err != nil {
		return err
	}
	for i := range state.Processors {
		if err := removeProcessor(ctx, s.client, s.progress(), &state.Processors[i], true, s.client.Forget); err != nil {
			return err
		}
	}
	if err := s.client.DropStream(ctx, name, state.Partitions); err != nil {
		return err
	}
	if gone.Rules, err = s.forgetRules(ctx, rules.Stream(name)); err != nil {
		return err
	}
	return s.out.line(gone, "stream %s removed; %s, %s, %s, %s%s", name,
		plural(gone.Entries, "entry"), plural(gone.Delayed, "delayed event"), plural(len(gone.Processors), "processor"), plural(gone.Dead, "dead letter"), alsoRules(gone.Rules))
}

// toRemove is what goes with a stream. It is an error that something still reads it.
func (s *session) toRemove(ctx context.Context, state *inspect.StreamState) (gone removedStream, err error) {
	name := state.Stream
	gone = removedStream{Stream: name, Delayed: state.Delayed, Processors: []string{}}
	logs, err := inspect.Logs(ctx, s.client, name, state.Partitions)
	if err != nil {
		return gone, err
	}
	for _, l := range logs {
		gone.Entries += l.Length
	}
	for _, p := range state.Processors {
		for _, m := range p.Members {
			if m.Alive {
				return gone, fmt.Errorf("%s/%s is run by worker %s: stop it first; nothing was changed", name, p.Processor, m.Worker)
			}
		}
		gone.Processors, gone.Dead = append(gone.Processors, p.Processor), gone.Dead+p.Totals.Dead
	}
	groups, err := s.foreignGroups(ctx, name)
	if err != nil {
		return gone, err
	}
	for _, g := range groups {
		if g.Alive {
			return gone, fmt.Errorf("%w; nothing was changed", stillRead(name, g))
		}
	}
	return gone, nil
}
