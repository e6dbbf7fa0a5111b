package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/words"
)

func rulesCommand(p *program) *cobra.Command {
	ls := p.command("ls", "list what is paused, blocked and quarantined: by whom, since when, until when, why, and what ends it", nil, listStops(""),
		"PROG rules ls",
		"PROG rules ls --output json")
	return p.group("rules", "see what is paused, blocked and quarantined", ls)
}

// listStops lists what is held back: all of it, or one kind.
func listStops(kind string) runner {
	return connected(func(ctx context.Context, s *session, c *call) error {
		if _, err := inspect.Rules(ctx, s.client); err != nil {
			return err // unwrapped, so that its advice is given
		}
		app, err := inspect.App(ctx, s.client, "", 1)
		if err != nil {
			return err
		}
		if err := extension.Recognize(ctx, s.app, s.client, app); err != nil {
			return err
		}
		for _, p := range app.Processors() {
			if n := p.Totals.Unknown; n > 0 {
				printf(s.stderr, "%s: %s of %s/%s cannot be looked at, so quarantines may be missing here; `%s doctor` says why\n", s.name, words.Plural(n, "partition"), p.Stream, p.Processor, s.prefix())
			}
		}
		states := slices.DeleteFunc(app.Stops(), func(r inspect.RuleState) bool { return kind != "" && r.Kind != kind })
		return s.out.table(states, func(t table) { writeStops(t, states, s.prefix()) })
	})
}

func writeStops(t table, states []inspect.RuleState, prefix string) {
	if len(states) == 0 {
		fmt.Fprintln(t, "nothing is paused, blocked or quarantined")
		return
	}
	fmt.Fprintln(t, "KIND\tSCOPE\tWHO\tSINCE\tUNTIL\tWHY\tENDS WITH")
	for _, r := range states {
		until, why := "until removed", words.Reason(r.Event, r.Why)
		switch {
		case r.Kind == inspect.KindQuarantine:
			until, why = "until released", fmt.Sprintf("at event %s: %s", words.Dash(r.Event), why)
		case r.Until != nil:
			until = r.Until.Format(time.RFC3339)
		}
		scope := r.Scope
		if r.Absent {
			scope += " (not there)"
		}
		t.row(r.Kind, scope, words.Dash(r.Who), r.At.Format(time.RFC3339), until, words.Dash(why), prefix+" "+r.Command)
	}
}

// ruleText describes a rule in one line.
func ruleText(r inspect.RuleState) string {
	text := fmt.Sprintf("%s of %s by %s since %s", r.Kind, r.Scope, r.Who, r.At.Format(time.RFC3339))
	if r.Until != nil {
		text += " until " + r.Until.Format(time.RFC3339)
	}
	if r.Why != "" {
		text += ": " + words.Summary(r.Why)
	}
	return text
}
