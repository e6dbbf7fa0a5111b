package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/operate"
)

func textFlag() cli.Flag {
	return &cli.StringFlag{Name: flagError, Usage: "only those whose error contains this `TEXT`"}
}

func (p *program) parked() *cli.Command {
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
	states, err := s.parked(ctx, a)
	if err != nil {
		return err
	}
	return s.out.write(states, func(w io.Writer) error { return writeRetries(w, states, time.Now()) })
}

func writeRetries(w io.Writer, states []inspect.RetryState, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tKEY\tATTEMPTS\tSTATE\tLAST FAILURE\tERROR")
	for _, r := range states {
		state := r.State
		if r.State == inspect.Waiting {
			state = "waits " + shortly(time.Duration(r.In)*time.Millisecond)
		}
		printf(t, "%s\t%s\t%d\t%s\t%s\t%s\n", r.Event, dash(r.Key), r.Attempts, state, ago(now, r.Last), dash(summary(r.Error)))
	}
	return t.Flush()
}

// changedEvents is what `parked retry` and `parked drop` tell.
type changedEvents struct {
	Stream    string   `json:"stream"`
	Processor string   `json:"processor"`
	Events    []string `json:"events"` // as they are listed
}

// parked are the parked events that a command is about.
func (s *session) parked(ctx context.Context, a *aside) ([]inspect.RetryState, error) {
	far := s.progress()
	defer far.clear()
	a.filter.Looked = far.looked("parked events")
	return inspect.Retries(ctx, s.client, a.stream, a.processor, a.filter)
}

// change applies a change to the chosen events, partition by partition, once sure has
// agreed, and tells which ones it was.
func (a *aside) change(ctx context.Context, s *session, did string, change operate.ParkedChange, sure func(n int) error) error {
	states, err := s.parked(ctx, a)
	if err == nil && len(states) > 0 && sure != nil {
		err = sure(len(states))
	}
	if err != nil {
		return err
	}
	events, err := inParts(s.progress(), did, states, func(part []inspect.RetryState) ([]operate.Event, error) {
		return operate.ChangeParked(ctx, s.client, a.stream, a.processor, part, change)
	})
	done := changedEvents{a.stream, a.processor, []string{}}
	for _, e := range events {
		done.Events = append(done.Events, entryid.EventID(e.Partition, e.ID))
	}
	what := plural(len(done.Events), "event") + " " + did
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
	return a.change(ctx, s, "due now", operate.RetryNow, nil)
}

func runRetryDrop(ctx context.Context, s *session, c *cli.Context) error {
	a, err := s.aside(ctx, c)
	if err == nil {
		err = a.guard(c)
	}
	if err != nil {
		return err
	}
	return a.change(ctx, s, "dropped", operate.DropParked, func(n int) error {
		return s.confirm(c, "Give up %s of %s/%s for good?", plural(n, "event"), a.stream, a.processor)
	})
}
