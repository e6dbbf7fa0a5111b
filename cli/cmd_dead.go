package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/records"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/targets"
	"github.com/runnel-go/runnel/internal/words"
)

// deadFlags select dead letters.
func deadFlags(more ...*pflag.Flag) flagList {
	return selectionFlags(append(flagList{
		newFlag(flagSince, time.Duration(0), "only those of the last `TIME`, such as 1h30m (default ever)"),
		newFlag(flagError, "", "only those whose error or reason contains this `TEXT`"),
	}, more...)...)
}

func deadCommand(p *program) *cobra.Command {
	ls := p.command("ls [STREAM/PROCESSOR]", "list dead letters, the oldest event first; without a processor, the processors that have dead letters",
		deadFlags(), runDeadLs,
		"PROG dead ls",
		"PROG dead ls orders/printer",
		"PROG dead ls orders/printer --since 1h --error timeout --output json")
	show := p.command("show STREAM/PROCESSOR", "show dead letters with all their fields", deadFlags(), selected(runDeadShow),
		"PROG dead show orders/printer --id 3/1767225600000-0",
		"PROG dead show orders/printer --key ada --limit 1")
	drop := p.command("drop STREAM/PROCESSOR", "delete dead letters for good", deadFlags(dryRunFlag(), allFlag(), yesFlag()), guarded(runDeadDrop),
		"PROG dead drop orders/printer --id 3/1767225600000-0 --yes",
		"PROG dead drop orders/printer --error \"no such customer\" --dry-run")
	return p.group("dead", "look after dead letters", ls, show, deadRetryCommand(p), deadReplayCommand(p), drop)
}

func runDeadLs(ctx context.Context, s *session, c *call) error {
	if len(c.args) == 0 {
		return runDeadOverview(ctx, s, c)
	}
	return selected(func(ctx context.Context, s *selection, _ *call) error {
		letters, err := s.letters(ctx)
		if err != nil {
			return err
		}
		return s.out.table(letters, func(t table) { writeDead(t, letters, time.Now()) })
	})(ctx, s, c)
}

// dead is what had its last attempt at the target.
func (s *selection) dead() (extension.FailureStore, error) {
	if s.target.Dead == nil {
		return nil, fmt.Errorf("%s/%s keeps no dead letters", s.stream, s.processor)
	}
	return s.target.Dead, nil
}

// letters are the selected dead letters. Where there are none, it names the other place where they
// may be, the stream of middleware.DeadLetter.
func (s *selection) letters(ctx context.Context) ([]extension.Failure, error) {
	dead, err := s.dead()
	if err != nil {
		return nil, err
	}
	letters, err := s.listed(ctx, dead)
	if err != nil || len(letters) > 0 || s.out.json {
		return letters, err
	}
	own := s.stream + ".dead" // as middleware.DeadLetters names it
	if _, there, err := s.client.LoadMeta(ctx, own); err == nil && there {
		printf(s.stderr, "%s/%s has no such dead letters of a Retry; what middleware.DeadLetter moves is in stream %s: tail %s\n",
			s.stream, s.processor, own, own)
	}
	return letters, nil
}

func writeDead(t table, letters []extension.Failure, now time.Time) {
	fmt.Fprintln(t, "ID\tEVENT\tKEY\tATTEMPTS\tDIED\tREASON\tERROR")
	for _, d := range letters {
		t.row(d.ID, words.Dash(d.Event), words.Dash(d.Key), d.Attempts, words.Ago(now, d.Died), words.Dash(d.Reason), words.Dash(words.Summary(d.Error)))
	}
}

// A listedDead is what `dead ls` prints without an argument: a processor with dead letters, or
// with partitions that could not be read.
type listedDead struct {
	Stream    string             `json:"stream"`
	Processor string             `json:"processor"`
	Dead      int64              `json:"dead"`
	Unknown   int                `json:"unknown"`          // partitions that could not be read
	Newest    *extension.Failure `json:"newest,omitempty"` // that died last
}

// runDeadOverview lists the processors that have dead letters.
func runDeadOverview(ctx context.Context, s *session, c *call) error {
	for _, f := range deadFlags() {
		if c.IsSet(f.Name) {
			return usagef(c, "which processor? say STREAM/PROCESSOR; without it there is a list of processors, and no flag narrows that down")
		}
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	state, err := inspect.App(ctx, s.client, "", 0)
	if err != nil {
		return err
	}
	list := []listedDead{}
	for _, p := range state.Processors() {
		if p.Totals.Dead == 0 && p.Totals.Unknown == 0 {
			continue
		}
		newest, err := s.admin.DeadLetters(p.Stream, p.Processor).Newest(ctx)
		if err != nil && p.Totals.Unknown == 0 { // the number of unknown partitions stands for other errors
			return err
		}
		list = append(list, listedDead{p.Stream, p.Processor, p.Totals.Dead, p.Totals.Unknown, targets.OfLetter(newest)})
	}
	parts, err := deadParts(ctx, s)
	if err != nil {
		return err
	}
	list = append(list, parts...)
	return s.out.table(list, func(t table) { writeDeadOverview(t, list, time.Now()) })
}

// deadParts lists the parts of extensions that have dead letters.
func deadParts(ctx context.Context, s *session) (list []listedDead, err error) {
	targets, err := extension.Targets(ctx, s.app, s.client, "")
	for _, t := range targets {
		if t.Dead == nil {
			continue
		}
		one := listedDead{Stream: t.Owner, Processor: t.Part}
		for f, err := range t.Dead.List(ctx, extension.Filter{}) {
			if err != nil {
				return nil, err
			}
			if one.Dead++; one.Newest == nil || f.Died != nil && (one.Newest.Died == nil || f.Died.After(*one.Newest.Died)) {
				one.Newest = &f
			}
		}
		if one.Dead > 0 {
			list = append(list, one)
		}
	}
	return list, err
}

func writeDeadOverview(t table, list []listedDead, now time.Time) {
	fmt.Fprintln(t, "PROCESSOR\tDEAD\tNEWEST\tKEY\tDIED\tREASON\tERROR")
	see := ""
	for _, l := range list {
		name, d := l.Stream+"/"+l.Processor, extension.Failure{}
		if l.Newest != nil {
			d = *l.Newest
			see = fmt.Sprintf("dead ls %s lists them, dead show %s --id %s shows one", name, name, d.ID)
		}
		t.row(name, words.AtLeast(l.Dead, l.Unknown > 0), words.Dash(d.ID), words.Dash(d.Key),
			words.Ago(now, d.Died), words.Dash(d.Reason), words.Dash(words.Summary(d.Error)))
	}
	if see != "" {
		t.linef("%s", see)
	}
}

// shownLetter is what `dead show` prints. Fields that are not text are in Base64.
type shownLetter struct {
	extension.Failure
	Fields map[string]string `json:"fields"`
	Base64 map[string]string `json:"base64,omitempty"`
	Record json.RawMessage   `json:"record,omitempty"` // decoded, if it can be
}

// Bytes that one record, and all together, may take to be decoded for `dead show`. The fields are
// shown anyway, and a decoded record may be a thousand times as large.
const (
	recordShown  = 4 << 20
	recordsShown = 32 << 20
)

func runDeadShow(ctx context.Context, s *selection, _ *call) error {
	s.filter.Fields = true
	letters, err := s.letters(ctx)
	if err != nil {
		return err
	}
	var look *records.Decoder // nil: they are no events
	if targets.OfCore(s.target) {
		if look, err = s.decoder(ctx, s.stream); err != nil {
			return err
		}
	}
	shown := make([]shownLetter, len(letters))
	left := int64(recordsShown)
	for i, d := range letters {
		shown[i] = shownLetter{Failure: d, Fields: map[string]string{}}
		if look != nil {
			shown[i].Record, _ = look.Within(min(left, recordShown)).Record(redisconn.Entry{ID: d.ID, Values: d.Fields})
			left -= int64(len(shown[i].Record))
		}
		for name, value := range d.Fields {
			if text := fmt.Sprint(value); utf8.ValidString(text) {
				shown[i].Fields[name] = text
				continue
			}
			if shown[i].Base64 == nil {
				shown[i].Base64 = map[string]string{}
			}
			shown[i].Base64[name] = base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(value)))
		}
	}
	return s.out.write(shown, func(w io.Writer) error {
		for i := range shown {
			t := newTable(w)
			shown[i].write(t)
			if err := t.Flush(); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *shownLetter) write(t table) {
	t.row("dead letter", l.ID)
	if l.Event != "" {
		t.row("event", l.Event)
	}
	t.row("key", strconv.Quote(l.Key))
	t.row("reason", l.Reason)
	t.row("attempts", l.Attempts)
	for i, at := range []*time.Time{l.First, l.Last, l.Died} {
		if at != nil {
			t.row([]string{"first failure", "last failure", "died"}[i], at.Format(time.RFC3339Nano))
		}
	}
	t.row("epoch", l.Epoch)
	t.row("error", strconv.Quote(l.Error))
	for _, name := range slices.Sorted(maps.Keys(l.Failure.Fields)) {
		t.row("field "+strconv.Quote(name), strconv.Quote(fmt.Sprint(l.Failure.Fields[name])))
	}
	if l.Record != nil {
		t.row("record", string(l.Record))
	}
	fmt.Fprintln(t)
}

// changedLetters is what `dead drop` prints.
type changedLetters struct {
	Stream    string              `json:"stream"`
	Processor string              `json:"processor"`
	DryRun    bool                `json:"dry_run"`
	Dropped   []extension.Failure `json:"dropped"`
}

func runDeadDrop(ctx context.Context, s *selection, c *call) error {
	return changeLetters(ctx, c, s, letterChange{
		did: "dropped", left: "what is left is listed by dead ls",
		question: "Delete %[1]s of %[2]s/%[3]s for good?", ask: true,
		do: extension.FailureStore.Drop,
		result: func(dry bool, letters []extension.Failure) any {
			return changedLetters{s.stream, s.processor, dry, letters}
		},
	})
}

// A letterChange is what a command does with dead letters.
type letterChange struct {
	did      string // "dropped"
	left     string // what an error adds about the dead letters that were not changed
	question string // with verbs for how many, the stream and the processor
	ask      bool
	do       func(extension.FailureStore, context.Context, []extension.Failure) ([]extension.Failure, error)
	result   func(dry bool, letters []extension.Failure) any
}

// changeLetters changes the selected dead letters, or lists them with --dry-run.
func changeLetters(ctx context.Context, c *call, s *selection, change letterChange) error {
	letters, err := s.letters(ctx)
	if err != nil {
		return err
	}
	if c.Bool(flagDryRun) {
		return s.out.table(change.result(true, letters), func(t table) {
			t.linef("%s would be %s:", words.Plural(len(letters), s.noun()), change.did)
			writeDead(t, letters, time.Now())
		})
	}
	if len(letters) > 0 && change.ask {
		if err := s.confirm(c, change.question, words.Plural(len(letters), s.noun()), s.stream, s.processor); err != nil {
			return err
		}
	}
	done, err := inParts(ctx, s.far, change.did, letters, func(ctx context.Context, part []extension.Failure) ([]extension.Failure, error) {
		return change.do(s.target.Dead, ctx, part)
	})
	if err != nil {
		err = fmt.Errorf("%w; %s", err, change.left)
	}
	return errors.Join(err, s.out.line(change.result(false, done), "%s %s", words.Plural(len(done), s.noun()), change.did))
}

// noun is what is dead of the target.
func (s *selection) noun() string {
	if targets.OfCore(s.target) {
		return "dead letter"
	}
	return "dead " + s.target.Noun
}
