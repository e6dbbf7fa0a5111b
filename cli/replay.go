package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/words"
)

func deadReplayCommand(p *program) *cli.Command {
	return p.command(&cli.Command{
		Name:      "replay",
		Usage:     "append the events of dead letters again, the oldest first, for every processor of the stream, and remove the dead letters",
		ArgsUsage: "STREAM/PROCESSOR",
		Flags: deadFlags(dryRunFlag(),
			&cli.StringFlag{Name: "to", DefaultText: "the same", Usage: "append to this `STREAM` instead"},
			yesFlag()),
		Action: p.action(runDeadReplay),
	},
		"PROG dead replay orders/printer --dry-run",
		"PROG dead replay orders/printer --key ada --yes",
		"PROG dead replay orders/printer --since 1h --to orders-again")
}

// replayedLetters is what `dead replay` tells.
type replayedLetters struct {
	Stream    string           `json:"stream"`
	Processor string           `json:"processor"`
	DryRun    bool             `json:"dry_run"`
	SeenBy    []string         `json:"seen_by"` // the processors that get the events
	Replayed  []admin.Replayed `json:"replayed"`
}

func runDeadReplay(ctx context.Context, s *session, c *cli.Context) error {
	a, err := s.aside(ctx, c)
	if err != nil {
		return err
	}
	dead, how := s.admin.DeadLetters(a.stream, a.processor), &admin.ReplayOptions{To: c.String("to"), DryRun: c.Bool(flagDryRun)}
	if _, err := dead.Replay(ctx, nil, how); err != nil { // where to, before anything is asked
		return err
	}
	letters, err := s.letters(ctx, a, dead.List)
	if err != nil {
		return err
	}
	out := replayedLetters{Stream: a.stream, Processor: a.processor, DryRun: c.Bool(flagDryRun)}
	to := cmp.Or(c.String("to"), a.stream)
	st, err := s.admin.Stream(ctx, to)
	if err != nil {
		return err
	}
	out.SeenBy = st.Processors
	if !out.DryRun && len(letters) > 0 {
		if err := s.confirm(c, "Append the events of %s to stream %s again, where %s?", words.Plural(len(letters), "dead letter"), to, out.seen()); err != nil {
			return err
		}
	}
	out.Replayed, err = inParts(ctx, s.far, "replayed", letters, func(ctx context.Context, part []admin.DeadLetter) ([]admin.Replayed, error) {
		return dead.Replay(ctx, part, how)
	})
	if err != nil {
		err = fmt.Errorf("%w; the dead letters behind it are as they were: repeat the command", err)
	}
	return errors.Join(err, unwritten(out.did(), s.out.write(out, func(w io.Writer) error { return out.write(w, time.Now()) })))
}

func (l *replayedLetters) write(w io.Writer, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(l.Replayed) > 0 {
		fmt.Fprintln(t, "ID\tEVENT\tKEY\tDIED\tREASON\t\tTO")
	}
	for _, r := range l.Replayed {
		printf(t, "%s\t%s\t%s\t%s\t%s\t→\t%s %s\n", r.ID, words.Dash(r.Event), words.Dash(r.Key),
			words.Ago(now, &r.Died), words.Dash(r.Reason), r.ToStream, cmp.Or(r.ToEvent, strconv.Itoa(r.ToPartition)))
	}
	did := l.did()
	if l.DryRun && len(l.Replayed) > 0 {
		did += "; " + l.seen()
	}
	printf(t, "%s\n", did)
	return t.Flush()
}

// did tells what the command did, or would do.
func (l *replayedLetters) did() string {
	did := "replayed"
	if l.DryRun {
		did = "would be replayed"
	}
	return words.Plural(len(l.Replayed), "dead letter") + " " + did
}

// seen tells whom a replay reaches.
func (l *replayedLetters) seen() string {
	switch len(l.SeenBy) {
	case 0:
		return "no processor sees them"
	case 1:
		return "processor " + l.SeenBy[0] + " sees them"
	}
	return fmt.Sprintf("all %d processors see them, %s, also those that were done with them", len(l.SeenBy), strings.Join(l.SeenBy, ", "))
}
