package cli

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/keys"
)

const flagRole = "role"

// roles are the names of the roles.
func roles() string { return strings.Join(slices.Sorted(maps.Keys(keys.Roles())), ", ") }

func doctorCommand(p *program) *cobra.Command {
	role := newFlag(flagRole, keys.Work.String(), "what this user of Redis is for: `ROLE` "+roles())
	return p.command("doctor", "is this Redis fit for production, and may this user do what is needed? Exit with 3 if not", flagList{role}, runDoctor,
		"PROG doctor",
		"PROG doctor --role producer",
		"PROG doctor --output json")
}

func runDoctor(ctx context.Context, s *session, c *call) error {
	role, ok := keys.Roles()[c.String(flagRole)]
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
	if role != keys.Produce { // a producer may not read the rest
		more, err := extension.Diagnose(ctx, s.app, s.client)
		if err != nil {
			return err
		}
		found = append(found, more...)
	}
	err = s.out.write(found, func(w io.Writer) error {
		for _, d := range found {
			printf(w, "%-8s %s: %s\n", d.Level, d.Check, d.Found)
			if d.Advice != "" {
				printf(w, "%8s %s\n", "→", d.Advice)
			}
		}
		return nil
	})
	if err == nil && slices.ContainsFunc(found, func(d inspect.Diagnosis) bool { return d.Level == inspect.LevelProblem }) {
		return exitThreshold
	}
	return err
}
