package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/words"
)

// auditedByDefault is how many actions `audit ls` lists without --limit.
const auditedByDefault = 50

func auditCommand(p *program) *cobra.Command {
	limit := newFlag(flagLimit, auditedByDefault, "at most `N` actions")
	ls := p.command("ls", "list what was done from the dashboard: by whom, from where, why, and with which outcome; the newest first", flagList{limit}, runAudit,
		"PROG audit ls",
		"PROG audit ls --limit 500 --output json")
	return p.group("audit", "see what was done from the dashboard", ls)
}

func runAudit(ctx context.Context, s *session, c *call) error {
	if err := checkLimit(c); err != nil {
		return err
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	states, err := inspect.Audit(ctx, s.client, c.Int(flagLimit))
	if err != nil {
		return err
	}
	return s.out.table(states, func(t table) {
		fmt.Fprintln(t, "TIME\tWHO\tFROM\tWHAT\tON\tOUTCOME\tRESULT\tWHY")
		for _, a := range states {
			t.row(a.At.Format(time.RFC3339), words.Dash(words.Summary(a.Who)), words.Summary(a.From), a.What, words.Dash(words.Summary(a.On)),
				cmp.Or(a.Outcome, "?"), words.Dash(words.Summary(a.Result)), words.Dash(words.Summary(a.Why)))
		}
	})
}
