package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/records"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/words"
)

const (
	flagFollow = "follow"
	flagFrom   = "from"
	flagGrep   = "grep"
	flagRaw    = "raw"

	// tailedByDefault is how many events `tail` shows without --from and --limit.
	tailedByDefault = 10
)

func tailCommand(p *program) *cobra.Command {
	return p.command("tail STREAM", "show events of a stream, decoded; no processor misses them", flagList{
		newFlag(flagFollow, false, "go on with events as they come, until interrupted"),
		newFlag(flagFrom, "", "`WHERE` to begin: start, end, an event or entry ID, a time such as 2026-01-31T08:00:00Z, or -1h (default the last 10)"),
		partitionFlag(),
		newFlag(flagKey, "", "only events with this `KEY`"),
		newFlag(flagGrep, "", "only events whose record, as it is shown, matches this `REGEXP`"),
		limitFlag("at most `N` events; without --from the last N, and with --follow what comes behind them"),
		newFlag(flagRaw, false, "the fields of the entries as they are in Redis"),
	}, runTail,
		"PROG tail orders",
		"PROG tail orders --follow --key ada",
		"PROG tail orders --from -1h --grep refund --output json")
}

// tailArgs are the events that `tail` shows.
type tailArgs struct {
	stream     string
	partitions []int
	from       string // entry ID behind which it begins
	last       int    // begin with the last so many, -1: with all
	follow     bool
	until      string // entry ID at which it ends, "" for no such end
	limit      int    // 0: none
	key        *string
	grep       *regexp.Regexp
	raw        bool
}

// A shownEvent is what `tail` prints of an event.
type shownEvent struct {
	Stream    string          `json:"stream"`
	Partition int             `json:"partition"`
	ID        string          `json:"id"`
	Time      time.Time       `json:"time"` // by the ID
	Key       *string         `json:"key"`  // null: unknown
	Record    json.RawMessage `json:"record,omitempty"`
	Err       string          `json:"err,omitempty"`    // why there is no record
	Fields    map[string]any  `json:"fields,omitempty"` // with --raw, in the place of the record
}

func runTail(ctx context.Context, s *session, c *call) error {
	a, err := tailArgsOf(ctx, s, c)
	if err != nil {
		return err
	}
	look, err := s.decoder(ctx, a.stream)
	if err != nil {
		return err
	}
	t := inspect.NewTail(s.client, a.stream, a.partitions, a.from)
	defer t.Close()
	if a.last >= 0 {
		if err := t.ToEnd(ctx, a.last); err != nil {
			return err
		}
	}
	for shown := 0; a.limit == 0 || shown < a.limit; {
		e, ok, err := t.Next(ctx, a.follow)
		switch {
		case err != nil && ctx.Err() != nil && a.follow:
			return nil // interrupted, as it has no other end
		case err != nil:
			return err
		case !ok || (a.until != "" && entryid.Compare(e.Entry.ID, a.until) > 0):
			return nil
		}
		one := a.show(e, look)
		if !a.wants(&one) {
			continue
		}
		if one.Key != nil {
			*one.Key = store.KeyText(*one.Key)
		}
		shown++
		if err := s.out.write(&one, one.write); err != nil {
			return err
		}
	}
	return nil
}

// tailArgsOf reads the flags, and looks up the stream.
func tailArgsOf(ctx context.Context, s *session, c *call) (*tailArgs, error) {
	a := &tailArgs{stream: s.stream, from: "0-0", last: -1, limit: c.Int(flagLimit), follow: c.Bool(flagFollow), key: keyOf(c), raw: c.Bool(flagRaw)}
	if err := checkLimit(c); err != nil {
		return nil, err
	}
	if c.IsSet(flagGrep) {
		var err error
		if a.grep, err = regexp.Compile(c.String(flagGrep)); err != nil {
			return nil, usagef(c, "--grep: %v", err)
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
	if err := a.begin(ctx, s, c); err != nil || a.follow || a.last >= 0 {
		return a, err // no end, or that of each partition when it is read
	}
	// What is appended while the command runs is not shown.
	logs, err := inspect.Logs(ctx, s.client, a.stream, meta.Partitions)
	if err != nil {
		return nil, err
	}
	a.until = "0-0"
	for _, l := range logs {
		if l.Err == "" && entryid.Compare(l.End, a.until) > 0 {
			a.until = l.End
		}
	}
	return a, nil
}

// begin reads --from.
func (a *tailArgs) begin(ctx context.Context, s *session, c *call) error {
	from := c.String(flagFrom)
	_, noID := admin.ParseID(from)
	switch {
	case !c.IsSet(flagFrom):
		a.last = cmp.Or(a.limit, tailedByDefault)
		if a.follow { // what comes later is not counted
			a.limit = 0
		}
		return nil
	case from == "start":
		return nil
	case from == "end":
		a.last = 0
		return nil
	case noID == nil:
		a.from = entryid.Before(from)
		return nil
	}
	if _, id, ok := entryid.ParseEventID(from); ok { // at its time in the other partitions
		a.from = entryid.Before(id)
		return nil
	}
	when, ok := inspect.ParseMoment(from)
	if !ok {
		return usagef(c, "--from %q is none of start, end, an entry ID, an event such as 3/1767225600000-0, a time such as 2026-01-31T08:00:00Z, a time ago such as -1h30m", from)
	}
	at, err := when.Time(ctx, s.client)
	a.from = entryid.Before(strconv.FormatInt(max(at.UnixMilli(), 0), 10))
	return err
}

// show decodes an entry.
func (a *tailArgs) show(e inspect.TailedEvent, look *records.Decoder) shownEvent {
	one := shownEvent{Stream: a.stream, Partition: e.Partition, ID: entryid.EventID(e.Partition, e.Entry.ID), Time: entryid.Time(e.Entry.ID)}
	if key, ok := look.Key(e.Entry); ok {
		one.Key = &key
	}
	if a.raw {
		one.Fields = e.Entry.Values
		return one
	}
	var err error
	if one.Record, err = look.Record(e.Entry); err != nil {
		one.Err = err.Error()
	}
	return one
}

func (a *tailArgs) wants(e *shownEvent) bool {
	if a.key != nil && (e.Key == nil || *e.Key != *a.key) {
		return false
	}
	return a.grep == nil || a.grep.MatchString(e.text())
}

// text is the record, or what is shown in its place.
func (e *shownEvent) text() string {
	switch {
	case e.Fields != nil:
		names := slices.Sorted(maps.Keys(e.Fields))
		for i, name := range names {
			names[i] = fmt.Sprintf("%s=%q", name, e.Fields[name])
		}
		return strings.Join(names, " ")
	case e.Err != "":
		return "cannot be decoded: " + e.Err
	}
	return string(e.Record)
}

func (e *shownEvent) write(w io.Writer) error {
	key := "?"
	if e.Key != nil {
		key = *e.Key
	}
	_, err := printf(w, "%s  %s  %s  %s\n", e.Time.Format("2006-01-02T15:04:05.000Z"), e.ID, words.Dash(oneWord(key)), e.text())
	return err
}

// oneWord quotes a text that would look like more than one column.
func oneWord(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == '"' || r == 0x7f }) {
		return fmt.Sprintf("%q", text)
	}
	return text
}
