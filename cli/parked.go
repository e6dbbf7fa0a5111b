package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/words"
)

func textFlag() cli.Flag {
	return &cli.StringFlag{Name: flagError, Usage: "only those whose error contains this `TEXT`"}
}

func parkedCommand(p *program) *cli.Command {
	ls := p.command(&cli.Command{
		Name:      "ls",
		Usage:     "list events that wait for another attempt, and those that wait behind them",
		ArgsUsage: "STREAM/PROCESSOR",
		Flags:     chooseFlags(textFlag()),
		Action:    p.action(runRetryLs),
	},
		"PROG parked ls orders/printer",
		"PROG parked ls orders/printer --key ada --output json")
	retry := p.command(&cli.Command{
		Name:      "retry",
		Usage:     "run events that wait for their next attempt without waiting any longer",
		ArgsUsage: "STREAM/PROCESSOR",
		Flags:     chooseFlags(textFlag()),
		Action:    p.action(runRetryNow),
	},
		"PROG parked retry orders/printer",
		"PROG parked retry orders/printer --id 3/1767225600000-0")
	drop := p.command(&cli.Command{
		Name:      "drop",
		Usage:     "give up events that wait for another attempt, for good: they leave no dead letter",
		ArgsUsage: "STREAM/PROCESSOR",
		Flags: chooseFlags(
			textFlag(),
			&cli.BoolFlag{Name: flagAll, Usage: "all of them, when no other flag narrows them down"},
			yesFlag()),
		Action: p.action(runRetryDrop),
	},
		"PROG parked drop orders/printer --id 3/1767225600000-0 --yes",
		"PROG parked drop orders/printer --key ada")
	return p.group("parked", "look after events that wait for another attempt", ls, retry, drop)
}

func runRetryLs(ctx context.Context, s *session, c *cli.Context) error {
	a, err := s.aside(ctx, c)
	if err != nil {
		return err
	}
	states, err := s.admin.Parked(a.stream, a.processor).List(ctx, &a.filter)
	s.far.done()
	if err != nil {
		return err
	}
	return s.out.write(states, func(w io.Writer) error { return writeRetries(w, states, time.Now()) })
}

func writeRetries(w io.Writer, states []admin.ParkedEvent, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tKEY\tATTEMPTS\tSTATE\tLAST FAILURE\tERROR")
	for _, r := range states {
		state := r.State
		if r.State == admin.ParkedWaiting {
			state = "waits " + words.Short(time.Duration(r.In)*time.Millisecond)
		}
		printf(t, "%s\t%s\t%d\t%s\t%s\t%s\n", r.Event, words.Dash(r.Key), r.Attempts, state, words.Ago(now, r.Last), words.Dash(words.Summary(r.Error)))
	}
	return t.Flush()
}

// changedEvents is what `parked retry` and `parked drop` tell.
type changedEvents struct {
	Stream    string   `json:"stream"`
	Processor string   `json:"processor"`
	Events    []string `json:"events"` // as they are listed
}

// change applies a change to the chosen events, partition by partition, once sure has
// agreed, and tells which ones it was.
func (a *aside) change(ctx context.Context, s *session, did string, do func(context.Context, []admin.ParkedEvent) ([]admin.ParkedEvent, error), sure func(n int) error) error {
	states, err := s.admin.Parked(a.stream, a.processor).List(ctx, &a.filter)
	s.far.done()
	if err == nil && len(states) > 0 && sure != nil {
		err = sure(len(states))
	}
	if err != nil {
		return err
	}
	events, err := inParts(ctx, s.far, did, states, do)
	done := changedEvents{a.stream, a.processor, []string{}}
	for _, e := range events {
		done.Events = append(done.Events, e.Event)
	}
	what := words.Plural(len(done.Events), "event") + " " + did
	told := unwritten(what, s.out.write(done, func(w io.Writer) error {
		for _, id := range done.Events {
			printf(w, "%s\n", id)
		}
		_, err := printf(w, "%s\n", what)
		return err
	}))
	return errors.Join(err, told)
}

func runRetryNow(ctx context.Context, s *session, c *cli.Context) error {
	a, err := s.aside(ctx, c)
	if err != nil {
		return err
	}
	return a.change(ctx, s, "due now", s.admin.Parked(a.stream, a.processor).Retry, nil)
}

func runRetryDrop(ctx context.Context, s *session, c *cli.Context) error {
	a, err := s.aside(ctx, c)
	if err == nil {
		err = a.guard(c)
	}
	if err != nil {
		return err
	}
	return a.change(ctx, s, "dropped", s.admin.Parked(a.stream, a.processor).Drop, func(n int) error {
		return s.confirm(c, "Give up %s of %s/%s for good?", words.Plural(n, "event"), a.stream, a.processor)
	})
}
