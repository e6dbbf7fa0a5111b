package cli

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
)

const flagRole = "role"

// roles are the names of the roles.
func roles() string { return strings.Join(slices.Sorted(maps.Keys(store.Roles())), ", ") }

func doctorCommand(p *program) *cli.Command {
	return p.command(&cli.Command{
		Name:      "doctor",
		Usage:     "is this Redis fit for production, and may this user do what is needed? Exit with 3 if not",
		ArgsUsage: " ",
		Flags:     []cli.Flag{&cli.StringFlag{Name: flagRole, Value: store.Work.String(), Usage: "what this user of Redis is for: `ROLE` " + roles()}},
		Action:    p.action(runDoctor),
	},
		"PROG doctor",
		"PROG doctor --role producer",
		"PROG doctor --output json")
}

func runDoctor(ctx context.Context, s *session, c *cli.Context) error {
	if c.Args().Present() {
		return usagef(c, "unexpected argument %q", c.Args().First())
	}
	role, ok := store.Roles()[c.String(flagRole)]
	if !ok {
		return usagef(c, "--%s %q is none of %s", flagRole, c.String(flagRole), roles())
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	found, err := inspect.Diagnose(ctx, s.client, role)
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
		printf(w, "%-8s %s: %s\n", d.Level, d.Check, d.Found)
		if d.Advice != "" {
			if _, err := printf(w, "%8s %s\n", "→", d.Advice); err != nil {
				return err
			}
		}
	}
	return nil
}
