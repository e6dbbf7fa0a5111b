package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/admin"
)

func deadRetryCommand(p *program) *cli.Command {
	return p.command(&cli.Command{
		Name:      "retry",
		Usage:     "give dead letters back to their processor alone, which attempts their events anew, in order per key",
		ArgsUsage: "STREAM/PROCESSOR",
		Flags: deadFlags(dryRunFlag(),
			&cli.BoolFlag{Name: flagYes, Aliases: []string{"y"}, DisableDefaultText: true, Usage: "do not ask at a terminal"}),
		Action: p.action(runDeadRetry),
	},
		"PROG dead retry orders/printer --id 3/1767225600000-0",
		"PROG dead retry orders/printer --error timeout --dry-run",
		"PROG dead retry orders/printer")
}

// retriedLetters is what `dead retry` tells.
type retriedLetters struct {
	Stream    string             `json:"stream"`
	Processor string             `json:"processor"`
	DryRun    bool               `json:"dry_run"`
	Retried   []admin.DeadLetter `json:"retried"`
}

func runDeadRetry(ctx context.Context, s *session, c *cli.Context) error {
	a, err := s.aside(ctx, c)
	if err != nil {
		return err
	}
	st, err := s.admin.Stream(ctx, a.stream)
	if err != nil {
		return err
	}
	if !slices.Contains(st.Processors, a.processor) {
		if _, err := s.admin.DeadLetters(a.stream, a.processor).Newest(ctx); err != nil { // there never was one
			return err
		}
		return fmt.Errorf("stream %s has no processor %s any more, and nothing would run their events: `dead replay` appends them again", a.stream, a.processor)
	}
	return s.changeLetters(ctx, c, a, letterChange{
		did: "retried", left: "the dead letters behind it are as they were: repeat the command",
		question: fmt.Sprintf("Let %s/%s attempt the events of %%s anew?", a.stream, a.processor),
		ask:      isTerminal(s.stdin), // nothing is lost by it, so a script need not say that it is meant
		do:       s.admin.DeadLetters(a.stream, a.processor).Retry,
		told: func(dry bool, letters []admin.DeadLetter) any {
			return retriedLetters{a.stream, a.processor, dry, letters}
		},
	})
}
