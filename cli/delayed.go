package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/words"
)

// Flags that say when a record is due.
const (
	flagAt    = "at"
	flagAfter = "after"
)

func delayedCommand(p *program) *cli.Command {
	flags := func(more ...cli.Flag) []cli.Flag {
		return append([]cli.Flag{
			&cli.IntFlag{Name: flagPartition, DefaultText: "all", Usage: "only of partition `N`"},
			&cli.IntFlag{Name: flagLimit, Aliases: []string{"n"}, DefaultText: "all", Usage: "at most `N` events, those that are due first"},
		}, more...)
	}
	all := &cli.BoolFlag{Name: flagAll, DisableDefaultText: true, Usage: "all of them, where neither an ID nor another flag says which"}
	ls := p.command(&cli.Command{
		Name:      "ls",
		Usage:     "list delayed events, the one that is due first in front",
		ArgsUsage: "STREAM [ID...]",
		Flags:     flags(),
		Action:    p.action(runDelayedLs),
	},
		"PROG delayed ls orders",
		"PROG delayed ls orders --partition 3 --limit 10 --output json")
	cancel := p.command(&cli.Command{
		Name:      "cancel",
		Usage:     "take delayed events back, for good",
		ArgsUsage: "STREAM [ID...]",
		Flags:     flags(all, yesFlag()),
		Action: p.action(func(ctx context.Context, s *session, c *cli.Context) error {
			return runDelayedChange(ctx, s, c, "cancelled", (*admin.Delayed).Cancel)
		}),
	},
		"PROG delayed cancel orders 3/0000000000000042 --yes",
		"PROG delayed cancel orders --partition 3 --limit 10")
	fire := p.command(&cli.Command{
		Name:      "fire",
		Usage:     "make delayed events due now",
		ArgsUsage: "STREAM [ID...]",
		Flags:     flags(all),
		Action: p.action(func(ctx context.Context, s *session, c *cli.Context) error {
			return runDelayedChange(ctx, s, c, "fired", (*admin.Delayed).Fire)
		}),
	},
		"PROG delayed fire orders 3/0000000000000042",
		"PROG delayed fire orders --all")
	return p.group("delayed", "look after delayed events", ls, cancel, fire)
}

// delayedArgs are what a command is about.
type delayedArgs struct {
	stream     string
	partitions []int
	limit      int
	ids        []string // as they were sent; none: all of the partitions
}

// delayedArgs reads the arguments, and looks whether there is such a stream.
func (s *session) delayedArgs(ctx context.Context, c *cli.Context) (*delayedArgs, error) {
	a := &delayedArgs{stream: c.Args().First(), limit: c.Int(flagLimit), ids: c.Args().Tail()}
	switch {
	case a.stream == "":
		return nil, usagef(c, "which stream?")
	case c.IsSet(flagLimit) && a.limit < 1:
		return nil, usagef(c, "--limit is at least 1")
	case len(a.ids) > 0 && (c.IsSet(flagPartition) || c.IsSet(flagLimit) || c.Bool(flagAll)):
		return nil, usagef(c, "an ID says which event; flags say nothing more")
	}
	for _, id := range a.ids {
		if _, _, ok := store.ParseDelayedID(id); !ok {
			return nil, usagef(c, "%q is no ID of a delayed event, such as 3/0000000000000042", id)
		}
	}
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	meta, err := s.metadata(ctx, a.stream)
	if err != nil {
		return nil, err
	}
	if a.partitions, err = chosenPartitions(c, a.stream, meta.Partitions); err != nil {
		return nil, err
	}
	for _, id := range a.ids {
		if n, _, _ := store.ParseDelayedID(id); n >= meta.Partitions {
			return nil, noPartition(a.stream, n, meta.Partitions)
		}
	}
	return a, nil
}

// shownDelayed is what `delayed ls` tells.
type shownDelayed struct {
	admin.DelayedEvent
	Record json.RawMessage `json:"record,omitempty"` // decoded, if it can be
}

func runDelayedLs(ctx context.Context, s *session, c *cli.Context) error {
	a, err := s.delayedArgs(ctx, c)
	if err != nil {
		return err
	}
	events, err := s.admin.Delayed(a.stream).List(ctx, &admin.DelayedFilter{Partitions: a.partitions, Limit: a.limit})
	if err != nil {
		return err
	}
	look, err := s.decoder(ctx, a.stream)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, id := range a.ids {
		wanted[id] = true
	}
	shown := []shownDelayed{}
	for _, e := range events {
		if len(wanted) > 0 && !wanted[e.ID] {
			continue
		}
		entry := redisconn.Entry{ID: e.ID, Values: e.Fields}
		if key, ok := look.Key(entry); ok {
			e.Key = store.KeyText(key)
		}
		record, _ := look.Record(entry)
		shown = append(shown, shownDelayed{DelayedEvent: e, Record: record})
	}
	return s.out.write(shown, func(w io.Writer) error { return writeDelayed(w, shown, time.Now()) })
}

func writeDelayed(w io.Writer, events []shownDelayed, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tDUE\tIN\tSENT\tKEY\tRECORD")
	for _, e := range events {
		in := "now"
		if d := e.Due.Sub(now); d > 0 {
			in = words.Short(d)
		}
		printf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", e.ID, e.Due.Format("2006-01-02T15:04:05.000Z07:00"), in, words.Ago(now, &e.Sent), words.Dash(e.Key), words.Dash(words.Summary(string(e.Record))))
	}
	return t.Flush()
}

// changedDelayed is what `delayed cancel` and `delayed fire` tell.
type changedDelayed struct {
	Stream  string   `json:"stream"`
	Done    string   `json:"done"` // cancelled or fired
	Events  []string `json:"events"`
	Missing []string `json:"missing"` // these were not delayed any more
}

// runDelayedChange does something with each event that the arguments choose.
func runDelayedChange(ctx context.Context, s *session, c *cli.Context, done string,
	change func(*admin.Delayed, context.Context, ...string) ([]string, error)) error {
	a, err := s.delayedArgs(ctx, c)
	if err != nil {
		return err
	}
	ids := a.ids
	if len(ids) == 0 {
		if !c.IsSet(flagPartition) && !c.IsSet(flagLimit) && !c.Bool(flagAll) {
			return usagef(c, "which ones? say an ID, --partition, --limit, or --all")
		}
		events, err := s.admin.Delayed(a.stream).List(ctx, &admin.DelayedFilter{Partitions: a.partitions, Limit: a.limit})
		if err != nil {
			return err
		}
		for _, e := range events {
			ids = append(ids, e.ID)
		}
	}
	if done == "cancelled" && len(ids) > 0 {
		if err := s.confirm(c, "Take %s of stream %s back, for good?", words.Plural(len(ids), "delayed event"), a.stream); err != nil {
			return err
		}
	}
	out := changedDelayed{Stream: a.stream, Done: done, Events: []string{}, Missing: []string{}}
	out.Events, err = inParts(ctx, s.far, done, ids, func(ctx context.Context, part []string) ([]string, error) {
		some, err := change(s.admin.Delayed(a.stream), ctx, part...)
		out.Missing = append(out.Missing, missing(part, some, err == nil)...)
		return some, err
	})
	if err != nil {
		err = fmt.Errorf("%w; %s so far: %s", err, done, words.Plural(len(out.Events), "event"))
	}
	if writeErr := s.out.line(out, "%s %s", words.Plural(len(out.Events), "event"), done); err == nil {
		err = writeErr
	}
	if err == nil && len(a.ids) > 0 && len(out.Missing) > 0 {
		err = fmt.Errorf("not delayed any more, or never were: %s", strings.Join(out.Missing, ", "))
	}
	return err
}

// missing returns those of ids that are not among some, which are in the same order. Unless all
// of them were tried, nothing is known of those behind the last one of some.
func missing(ids, some []string, all bool) (out []string) {
	for _, id := range ids {
		switch {
		case len(some) > 0 && some[0] == id:
			some = some[1:]
		case len(some) > 0 || all:
			out = append(out, id)
		}
	}
	return out
}

// delayOf reads the flags that say when a record is due.
func delayOf(c *cli.Context, r *appview.JSONRecord) error {
	at, after := c.String(flagAt), c.Duration(flagAfter)
	switch {
	case c.IsSet(flagAt) && c.IsSet(flagAfter):
		return usagef(c, "either --at or --after")
	case c.IsSet(flagAfter) && after <= 0:
		return usagef(c, "--after is a time to come, such as 1h30m")
	case c.IsSet(flagAt):
		t, err := time.Parse(time.RFC3339, at)
		if err != nil {
			return usagef(c, "--at %q is no time such as 2026-01-31T08:00:00Z or 2026-01-31T09:00:00.5+01:00", at)
		}
		r.At = t
	}
	r.After = after
	return nil
}
