package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/internal/inspect"
)

func (p *program) doctor() *cli.Command {
	return p.command(&cli.Command{
		Name:      "doctor",
		Usage:     "is this Redis fit for production, and may this user do what is needed? Exit with 3 if not",
		ArgsUsage: " ",
		Action:    p.action(runDoctor),
	},
		"PROG doctor",
		"PROG doctor --output json")
}

func runDoctor(ctx context.Context, s *session, c *cli.Context) error {
	if c.Args().Present() {
		return usagef(c, "unexpected argument %q", c.Args().First())
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	found, err := inspect.Diagnose(ctx, s.client)
	if err != nil {
		return err
	}
	if err := s.out.write(found, func(w io.Writer) error { return writeDiagnoses(w, found) }); err != nil {
		return err
	}
	for _, d := range found {
		if d.Level == inspect.LevelProblem {
			return exitThreshold
		}
	}
	return nil
}

func writeDiagnoses(w io.Writer, found []inspect.Diagnosis) error {
	for _, d := range found {
		fmt.Fprintf(w, "%-8s %s: %s\n", d.Level, d.Check, d.Found)
		if d.Advice != "" {
			if _, err := fmt.Fprintf(w, "%8s %s\n", "→", d.Advice); err != nil {
				return err
			}
		}
	}
	return nil
}
