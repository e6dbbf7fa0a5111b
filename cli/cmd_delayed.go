package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/words"
)

func delayedCommand(p *program) *cobra.Command {
	flags := func(more ...*pflag.Flag) flagList {
		return append(more, partitionFlag(), limitFlag("at most `N` events, those that are due first"))
	}
	all := newFlag(flagAll, false, "all of them, where neither an ID nor another flag says which")
	ls := p.command("ls STREAM [ID...]", "list delayed events, the first one due on top", flags(), runDelayedLs,
		"PROG delayed ls orders",
		"PROG delayed ls orders --partition 3 --limit 10 --output json")
	cancel := p.command("cancel STREAM [ID...]", "take delayed events back, for good", flags(all, yesFlag()), changeDelayed("cancelled", (*admin.Delayed).Cancel),
		"PROG delayed cancel orders 3/0000000000000042 --yes",
		"PROG delayed cancel orders --partition 3 --limit 10")
	fire := p.command("fire STREAM [ID...]", "make delayed events due now", flags(all), changeDelayed("fired", (*admin.Delayed).Fire),
		"PROG delayed fire orders 3/0000000000000042",
		"PROG delayed fire orders --all")
	return p.group("delayed", "look after delayed events", ls, cancel, fire)
}

// delayedArgs are the delayed events that a command is about.
type delayedArgs struct {
	filter *admin.DelayedFilter
	ids    []string // as they were sent; none: all that the filter selects
}

// delayedArgsOf reads the arguments, and looks up the stream.
func delayedArgsOf(ctx context.Context, s *session, c *call) (*delayedArgs, error) {
	a := &delayedArgs{&admin.DelayedFilter{Limit: c.Int(flagLimit)}, c.args[min(1, len(c.args)):]}
	if s.stream == "" {
		return nil, usagef(c, "which stream?")
	}
	if err := checkLimit(c); err != nil {
		return nil, err
	}
	if len(a.ids) > 0 && (c.IsSet(flagPartition) || c.IsSet(flagLimit) || c.Bool(flagAll)) {
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
	meta, err := s.metadata(ctx, s.stream)
	if err != nil {
		return nil, err
	}
	if a.filter.Partitions, err = chosenPartitions(c, s.stream, meta.Partitions); err != nil {
		return nil, err
	}
	for _, id := range a.ids {
		if n, _, _ := store.ParseDelayedID(id); n >= meta.Partitions {
			return nil, noPartition(s.stream, n, meta.Partitions)
		}
	}
	return a, nil
}

// shownDelayed is what `delayed ls` prints.
type shownDelayed struct {
	admin.DelayedEvent
	Record json.RawMessage `json:"record,omitempty"` // decoded, if it can be
}

func runDelayedLs(ctx context.Context, s *session, c *call) error {
	a, err := delayedArgsOf(ctx, s, c)
	if err != nil {
		return err
	}
	events, err := s.admin.Delayed(s.stream).List(ctx, a.filter)
	if err != nil {
		return err
	}
	look, err := s.decoder(ctx, s.stream)
	if err != nil {
		return err
	}
	shown := []shownDelayed{}
	for _, e := range events {
		if len(a.ids) > 0 && !slices.Contains(a.ids, e.ID) {
			continue
		}
		entry := redisconn.Entry{ID: e.ID, Values: e.Fields}
		if key, ok := look.Key(entry); ok {
			e.Key = store.KeyText(key)
		}
		record, _ := look.Record(entry)
		shown = append(shown, shownDelayed{e, record})
	}
	return s.out.table(shown, func(t table) {
		now := time.Now()
		fmt.Fprintln(t, "ID\tDUE\tIN\tSENT\tKEY\tRECORD")
		for _, e := range shown {
			in := "now"
			if d := e.Due.Sub(now); d > 0 {
				in = words.Short(d)
			}
			t.row(e.ID, e.Due.Format("2006-01-02T15:04:05.000Z07:00"), in, words.Ago(now, &e.Sent), words.Dash(e.Key), words.Dash(words.Summary(string(e.Record))))
		}
	})
}

// changedDelayed is what `delayed cancel` and `delayed fire` print.
type changedDelayed struct {
	Stream  string   `json:"stream"`
	Done    string   `json:"done"` // cancelled or fired
	Events  []string `json:"events"`
	Missing []string `json:"missing"` // these were not delayed any more
}

// changeDelayed changes each event that the arguments select.
func changeDelayed(done string, change func(*admin.Delayed, context.Context, ...string) ([]string, error)) runner {
	return func(ctx context.Context, s *session, c *call) error {
		a, err := delayedArgsOf(ctx, s, c)
		if err != nil {
			return err
		}
		ids, delayed := a.ids, s.admin.Delayed(s.stream)
		if len(ids) == 0 {
			if !c.IsSet(flagPartition) && !c.IsSet(flagLimit) && !c.Bool(flagAll) {
				return usagef(c, "which ones? say an ID, --partition, --limit, or --all")
			}
			events, err := delayed.List(ctx, a.filter)
			if err != nil {
				return err
			}
			for _, e := range events {
				ids = append(ids, e.ID)
			}
		}
		if done == "cancelled" && len(ids) > 0 {
			if err := s.confirm(c, "Take %s of stream %s back, for good?", words.Plural(len(ids), "delayed event"), s.stream); err != nil {
				return err
			}
		}
		out := changedDelayed{Stream: s.stream, Done: done, Missing: []string{}}
		out.Events, err = inParts(ctx, s.far, done, ids, func(ctx context.Context, part []string) ([]string, error) {
			some, err := change(delayed, ctx, part...)
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
}

// missing returns those of ids that are not among some, which are in the same order. Unless all
// were tried, nothing is known of those behind the last one of some.
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
