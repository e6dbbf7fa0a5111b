package cli

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/words"
)

func removeStreamCommand(p *program) *cli.Command {
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
	gone, err := s.admin.RemoveStream(ctx, name, &admin.RemoveOptions{DryRun: true})
	if err != nil {
		return err
	}
	if err := s.confirm(c, "Delete stream %s for good, with %s, %s, %s and %s?",
		name, words.Plural(gone.Entries, "entry"), words.Plural(gone.Delayed, "delayed event"), words.Plural(len(gone.Processors), "processor"), words.Plural(gone.Dead, "dead letter")); err != nil {
		return err
	}
	if gone, err = s.admin.RemoveStream(ctx, name, nil); err != nil {
		return s.rulesLeft(err)
	}
	s.far.done()
	return s.out.line(gone, "stream %s removed; %s, %s, %s, %s%s", name,
		words.Plural(gone.Entries, "entry"), words.Plural(gone.Delayed, "delayed event"), words.Plural(len(gone.Processors), "processor"), words.Plural(gone.Dead, "dead letter"), alsoRules(gone.Rules))
}
