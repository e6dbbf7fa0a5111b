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
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/words"
)

// deadFlags choose dead letters.
func deadFlags(more ...cli.Flag) []cli.Flag {
	return chooseFlags(append([]cli.Flag{
		&cli.DurationFlag{Name: flagSince, DefaultText: "ever", Usage: "only those of the last `TIME`, such as 1h30m"},
		&cli.StringFlag{Name: flagError, Usage: "only those whose error or reason contains this `TEXT`"},
	}, more...)...)
}

func dryRunFlag() cli.Flag {
	return &cli.BoolFlag{Name: flagDryRun, DisableDefaultText: true, Usage: "list what it would be about, and change nothing"}
}

func deadCommand(p *program) *cli.Command {
	ls := p.command(&cli.Command{
		Name:      "ls",
		Usage:     "list dead letters, the oldest event first; without a processor, those that have any",
		ArgsUsage: "[STREAM/PROCESSOR]",
		Flags:     deadFlags(),
		Action:    p.action(runDeadLs),
	},
		"PROG dead ls",
		"PROG dead ls orders/printer",
		"PROG dead ls orders/printer --since 1h --error timeout --output json")
	show := p.command(&cli.Command{
		Name:      "show",
		Usage:     "show dead letters with all that is known of them",
		ArgsUsage: "STREAM/PROCESSOR",
		Flags:     deadFlags(),
		Action:    p.action(runDeadShow),
	},
		"PROG dead show orders/printer --id 3/1767225600000-0",
		"PROG dead show orders/printer --key ada --limit 1")
	drop := p.command(&cli.Command{
		Name:      "drop",
		Usage:     "delete dead letters for good",
		ArgsUsage: "STREAM/PROCESSOR",
		Flags: deadFlags(dryRunFlag(),
			&cli.BoolFlag{Name: flagAll, DisableDefaultText: true, Usage: "all of them, when no other flag narrows them down"},
			yesFlag()),
		Action: p.action(runDeadDrop),
	},
		"PROG dead drop orders/printer --id 3/1767225600000-0 --yes",
		"PROG dead drop orders/printer --error \"no such customer\" --dry-run")
	return p.group("dead", "look after dead letters", ls, show, deadRetryCommand(p), deadReplayCommand(p), drop)
}

func runDeadLs(ctx context.Context, s *session, c *cli.Context) error {
	if !c.Args().Present() {
		return runDeadOverview(ctx, s, c)
	}
	a, err := s.aside(ctx, c)
	if err != nil {
		return err
	}
	letters, err := s.letters(ctx, a, s.admin.DeadLetters(a.stream, a.processor).List)
	if err != nil {
		return err
	}
	return s.out.write(letters, func(w io.Writer) error { return writeDead(w, letters, time.Now()) })
}

// letters are the dead letters that a command is about. Where there are none it says where
// else they may be: what middleware.DeadLetter moves is not among them.
func (s *session) letters(ctx context.Context, a *aside, read func(context.Context, *admin.Filter) ([]admin.DeadLetter, error)) ([]admin.DeadLetter, error) {
	letters, err := read(ctx, &a.filter)
	s.far.done()
	if err != nil || len(letters) > 0 || s.out.json {
		return letters, err
	}
	own := a.stream + ".dead" // as middleware.DeadLetters names it
	if _, there, err := s.client.LoadMeta(ctx, own); err == nil && there {
		printf(s.stderr, "%s/%s has no such dead letters of a Retry; what middleware.DeadLetter moves is in stream %s: tail %s\n",
			a.stream, a.processor, own, own)
	}
	return letters, nil
}

func writeDead(w io.Writer, letters []admin.DeadLetter, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tEVENT\tKEY\tATTEMPTS\tDIED\tREASON\tERROR")
	for _, d := range letters {
		printf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", d.ID, words.Dash(d.Event), words.Dash(d.Key),
			d.Attempts, words.Ago(now, &d.Died), words.Dash(d.Reason), words.Dash(words.Summary(d.Error)))
	}
	return t.Flush()
}

// shownLetter is what `dead show` tells. Fields that are no text are in Base64.
type shownLetter struct {
	admin.DeadLetter
	Fields map[string]string `json:"fields"`
	Base64 map[string]string `json:"base64,omitempty"`
	Record json.RawMessage   `json:"record,omitempty"` // decoded, if it can be
}

// Bytes that a record may take to be decoded for `dead show`, and all of them together: the fields
// are shown anyway, and what they become may be a thousand times as much.
const (
	recordShown  = 4 << 20
	recordsShown = 32 << 20
)

func runDeadShow(ctx context.Context, s *session, c *cli.Context) error {
	a, err := s.aside(ctx, c)
	if err != nil {
		return err
	}
	letters, err := s.letters(ctx, a, s.admin.DeadLetters(a.stream, a.processor).Read)
	if err != nil {
		return err
	}
	look, err := s.decoder(ctx, a.stream)
	if err != nil {
		return err
	}
	shown := make([]shownLetter, len(letters))
	left := int64(recordsShown)
	for i, d := range letters {
		record, _ := look.Within(min(left, recordShown)).Record(redisconn.Entry{ID: d.ID, Values: d.Fields})
		left -= int64(len(record))
		shown[i] = shownLetter{DeadLetter: d, Fields: map[string]string{}, Record: record}
		for name, value := range d.Fields {
			switch text := fmt.Sprint(value); {
			case utf8.ValidString(text):
				shown[i].Fields[name] = text
			default:
				if shown[i].Base64 == nil {
					shown[i].Base64 = map[string]string{}
				}
				shown[i].Base64[name] = base64.StdEncoding.EncodeToString([]byte(text))
			}
		}
	}
	return s.out.write(shown, func(w io.Writer) error {
		for i := range shown {
			if err := shown[i].write(w); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *shownLetter) write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, value string) { printf(t, "%s\t%s\n", name, value) }
	line("dead letter", l.ID)
	line("event", l.Event)
	line("key", strconv.Quote(l.Key))
	line("reason", l.Reason)
	line("attempts", strconv.Itoa(l.Attempts))
	if l.First != nil {
		line("first failure", l.First.Format(time.RFC3339Nano))
	}
	if l.Last != nil {
		line("last failure", l.Last.Format(time.RFC3339Nano))
	}
	line("died", l.Died.Format(time.RFC3339Nano))
	line("epoch", strconv.FormatInt(l.Epoch, 10))
	line("error", strconv.Quote(l.Error))
	for _, name := range slices.Sorted(maps.Keys(l.DeadLetter.Fields)) {
		line("field "+strconv.Quote(name), strconv.Quote(fmt.Sprint(l.DeadLetter.Fields[name])))
	}
	if l.Record != nil {
		line("record", string(l.Record))
	}
	fmt.Fprintln(t)
	return t.Flush()
}

// changedLetters is what `dead drop` tells.
type changedLetters struct {
	Stream    string             `json:"stream"`
	Processor string             `json:"processor"`
	DryRun    bool               `json:"dry_run"`
	Dropped   []admin.DeadLetter `json:"dropped"`
}

func runDeadDrop(ctx context.Context, s *session, c *cli.Context) error {
	a, err := s.aside(ctx, c)
	if err == nil {
		err = a.guard(c)
	}
	if err != nil {
		return err
	}
	return s.changeLetters(ctx, c, a, letterChange{
		did: "dropped", left: "what is left is listed by dead ls",
		question: fmt.Sprintf("Delete %%s of %s/%s for good?", a.stream, a.processor), ask: true,
		do: s.admin.DeadLetters(a.stream, a.processor).Drop,
		told: func(dry bool, letters []admin.DeadLetter) any {
			return changedLetters{a.stream, a.processor, dry, letters}
		},
	})
}

// A letterChange is what a command does with dead letters.
type letterChange struct {
	did      string // "dropped"
	left     string // what is to be said of the others at an error
	question string // with %s for how many
	ask      bool
	do       func(context.Context, []admin.DeadLetter) ([]admin.DeadLetter, error)
	told     func(dry bool, letters []admin.DeadLetter) any
}

// changeLetters does it with the chosen dead letters, or with --dry-run lists them.
func (s *session) changeLetters(ctx context.Context, c *cli.Context, a *aside, change letterChange) error {
	letters, err := s.letters(ctx, a, s.admin.DeadLetters(a.stream, a.processor).List)
	if err != nil {
		return err
	}
	if c.Bool(flagDryRun) {
		return s.out.write(change.told(true, letters), func(w io.Writer) error {
			printf(w, "%s would be %s:\n", words.Plural(len(letters), "dead letter"), change.did)
			return writeDead(w, letters, time.Now())
		})
	}
	if len(letters) > 0 && change.ask {
		if err := s.confirm(c, change.question, words.Plural(len(letters), "dead letter")); err != nil {
			return err
		}
	}
	done, err := inParts(ctx, s.far, change.did, letters, change.do)
	if err != nil {
		err = fmt.Errorf("%w; %s", err, change.left)
	}
	return errors.Join(err, s.out.line(change.told(false, done), "%s %s", words.Plural(len(done), "dead letter"), change.did))
}
