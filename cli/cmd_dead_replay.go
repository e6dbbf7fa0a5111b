package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/targets"
	"github.com/runnel-go/runnel/internal/words"
)

const untouched = "the dead letters behind it are as they were: repeat the command"

func deadRetryCommand(p *program) *cobra.Command {
	yes := newFlag(flagYes, false, "do not ask at a terminal")
	return p.command("retry STREAM/PROCESSOR", "give dead letters back to their processor alone, which attempts their events anew, in order per key",
		deadFlags(dryRunFlag(), yes), selected(runDeadRetry),
		"PROG dead retry orders/printer --id 3/1767225600000-0",
		"PROG dead retry orders/printer --error timeout --dry-run",
		"PROG dead retry orders/printer")
}

// retriedLetters is what `dead retry` prints.
type retriedLetters struct {
	Stream    string              `json:"stream"`
	Processor string              `json:"processor"`
	DryRun    bool                `json:"dry_run"`
	Retried   []extension.Failure `json:"retried"`
}

func runDeadRetry(ctx context.Context, s *selection, c *call) error {
	if targets.OfCore(s.target) {
		if err := s.runs(ctx); err != nil {
			return err
		}
	}
	return changeLetters(ctx, c, s, letterChange{
		did: "retried", left: untouched,
		question: "Let %[2]s/%[3]s attempt %[1]s anew?",
		ask:      isTerminal(s.stdin), // a retry loses nothing, so a script needs no --yes
		do:       extension.FailureStore.Retry,
		result: func(dry bool, letters []extension.Failure) any {
			return retriedLetters{s.stream, s.processor, dry, letters}
		},
	})
}

// runs returns an error if the processor is not registered any more.
func (s *selection) runs(ctx context.Context) error {
	st, err := s.admin.Stream(ctx, s.stream)
	if err != nil || slices.Contains(st.Processors, s.processor) {
		return err
	}
	if _, err := s.events().Newest(ctx); err != nil { // the processor never existed
		return err
	}
	return fmt.Errorf("stream %s has no processor %s any more, and nothing would run their events: `dead replay` appends them again", s.stream, s.processor)
}

// events are the dead letters of a processor, which are events.
func (s *selection) events() *admin.DeadLetters { return s.admin.DeadLetters(s.stream, s.processor) }

func deadReplayCommand(p *program) *cobra.Command {
	return p.command("replay STREAM/PROCESSOR", "append the events of dead letters again, the oldest first, for every processor of the stream, and remove the dead letters",
		deadFlags(dryRunFlag(), newFlag(flagTo, "", "append to this `STREAM` instead (default the same)"), yesFlag()), selected(runDeadReplay),
		"PROG dead replay orders/printer --dry-run",
		"PROG dead replay orders/printer --key ada --yes",
		"PROG dead replay orders/printer --since 1h --to orders-again")
}

// replayedLetters is what `dead replay` prints.
type replayedLetters struct {
	Stream    string           `json:"stream"`
	Processor string           `json:"processor"`
	DryRun    bool             `json:"dry_run"`
	SeenBy    []string         `json:"seen_by"` // the processors that get the events
	Replayed  []admin.Replayed `json:"replayed"`
}

func runDeadReplay(ctx context.Context, s *selection, c *call) error {
	how := &admin.ReplayOptions{To: c.String(flagTo), DryRun: c.Bool(flagDryRun)}
	if !targets.OfCore(s.target) {
		return fmt.Errorf("what is dead at %s/%s is no event, so it cannot be appended to a stream: dead retry %[1]s/%[2]s tries it again", s.stream, s.processor)
	}
	if _, err := s.events().Replay(ctx, nil, how); err != nil { // checks the stream before any question
		return err
	}
	listed, err := s.letters(ctx)
	if err != nil {
		return err
	}
	letters := make([]admin.DeadLetter, len(listed))
	for i, f := range listed {
		letters[i] = f.Own.(admin.DeadLetter)
	}
	to := cmp.Or(how.To, s.stream)
	st, err := s.admin.Stream(ctx, to)
	if err != nil {
		return err
	}
	out := replayedLetters{Stream: s.stream, Processor: s.processor, DryRun: how.DryRun, SeenBy: st.Processors}
	if !out.DryRun && len(letters) > 0 {
		if err := s.confirm(c, "Append the events of %s to stream %s again, where %s?", words.Plural(len(letters), "dead letter"), to, out.seen()); err != nil {
			return err
		}
	}
	out.Replayed, err = inParts(ctx, s.far, "replayed", letters, func(ctx context.Context, part []admin.DeadLetter) ([]admin.Replayed, error) {
		return s.events().Replay(ctx, part, how)
	})
	if err != nil {
		err = fmt.Errorf("%w; %s", err, untouched)
	}
	return errors.Join(err, unwritten(out.did(), s.out.table(out, func(t table) { out.write(t, time.Now()) })))
}

func (l *replayedLetters) write(t table, now time.Time) {
	if len(l.Replayed) > 0 {
		fmt.Fprintln(t, "ID\tEVENT\tKEY\tDIED\tREASON\t\tTO")
	}
	for _, r := range l.Replayed {
		t.row(r.ID, words.Dash(r.Event), words.Dash(r.Key), words.Ago(now, &r.Died), words.Dash(r.Reason), "→",
			r.ToStream+" "+cmp.Or(r.ToEvent, strconv.Itoa(r.ToPartition)))
	}
	did := l.did()
	if l.DryRun && len(l.Replayed) > 0 {
		did += "; " + l.seen()
	}
	t.linef("%s", did)
}

// did is what the command did, or would do.
func (l *replayedLetters) did() string {
	did := "replayed"
	if l.DryRun {
		did = "would be replayed"
	}
	return words.Plural(len(l.Replayed), "dead letter") + " " + did
}

// seen names the processors that a replay reaches.
func (l *replayedLetters) seen() string {
	switch len(l.SeenBy) {
	case 0:
		return "no processor sees them"
	case 1:
		return "processor " + l.SeenBy[0] + " sees them"
	}
	return fmt.Sprintf("all %d processors see them, %s, also those that were done with them", len(l.SeenBy), strings.Join(l.SeenBy, ", "))
}
