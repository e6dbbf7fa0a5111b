package cli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/words"
)

// auditedByDefault is how many actions `audit ls` lists where nothing says how many.
const auditedByDefault = 50

func auditCommand(p *program) *cli.Command {
	ls := p.command(&cli.Command{
		Name:   "ls",
		Usage:  "list what was done from the dashboard: by whom, from where, why, and what became of it; the newest first",
		Flags:  []cli.Flag{&cli.IntFlag{Name: flagLimit, Aliases: []string{"n"}, DefaultText: fmt.Sprint(auditedByDefault), Usage: "at most `N` actions"}},
		Action: p.action(runAudit),
	},
		"PROG audit ls",
		"PROG audit ls --limit 500 --output json")
	return p.group("audit", "see what was done from the dashboard", ls)
}

func runAudit(ctx context.Context, s *session, c *cli.Context) error {
	limit := auditedByDefault
	if c.IsSet(flagLimit) {
		limit = c.Int(flagLimit)
	}
	switch {
	case c.Args().Present():
		return usagef(c, "unexpected argument %q", c.Args().First())
	case limit < 1:
		return usagef(c, "--limit is at least 1")
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	states, err := inspect.Audit(ctx, s.client, limit)
	if err != nil {
		return err
	}
	return s.out.write(states, func(w io.Writer) error { return writeAudit(w, states) })
}

func writeAudit(w io.Writer, states []inspect.AuditState) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TIME\tWHO\tFROM\tWHAT\tON\tOUTCOME\tRESULT\tWHY")
	for _, a := range states {
		outcome := a.Outcome
		if outcome == "" {
			outcome = "?"
		}
		printf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", a.At.Format(time.RFC3339), words.Dash(words.Summary(a.Who)), words.Summary(a.From), a.What, words.Dash(words.Summary(a.On)),
			outcome, words.Dash(words.Summary(a.Result)), words.Dash(words.Summary(a.Why)))
	}
	return t.Flush()
}
