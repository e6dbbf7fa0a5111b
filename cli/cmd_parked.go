package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/words"
)

func parkedCommand(p *program) *cli.Command {
	flags := func(more ...cli.Flag) []cli.Flag {
		return selectionFlags(append(more, &cli.StringFlag{Name: flagError, Usage: "only those whose error contains this `TEXT`"})...)
	}
	ls := p.command("ls STREAM/PROCESSOR", "list events that wait for another attempt, and those that wait behind them", flags(), selected(runParkedLs),
		"PROG parked ls orders/printer",
		"PROG parked ls orders/printer --key ada --output json")
	retry := p.command("retry STREAM/PROCESSOR", "run events that wait for their next attempt without waiting any longer", flags(), selected(runParkedRetry),
		"PROG parked retry orders/printer",
		"PROG parked retry orders/printer --id 3/1767225600000-0")
	drop := p.command("drop STREAM/PROCESSOR", "give up events that wait for another attempt, for good: they leave no dead letter", flags(allFlag(), yesFlag()), guarded(runParkedDrop),
		"PROG parked drop orders/printer --id 3/1767225600000-0 --yes",
		"PROG parked drop orders/printer --key ada")
	return p.group("parked", "look after events that wait for another attempt", ls, retry, drop)
}

// parked are all parked events of the processor.
func (s *selection) parked() *admin.Parked { return s.admin.Parked(s.stream, s.processor) }

func runParkedLs(ctx context.Context, s *selection, _ *cli.Context) error {
	events, err := s.parked().List(ctx, &s.filter)
	s.far.done()
	if err != nil {
		return err
	}
	return s.out.table(events, func(t table) {
		fmt.Fprintln(t, "ID\tKEY\tATTEMPTS\tSTATE\tLAST FAILURE\tERROR")
		for _, e := range events {
			state := e.State
			if state == admin.ParkedWaiting {
				state = "waits " + words.Short(time.Duration(e.In)*time.Millisecond)
			}
			t.row(e.Event, words.Dash(e.Key), e.Attempts, state, words.Ago(time.Now(), e.Last), words.Dash(words.Summary(e.Error)))
		}
	})
}

func runParkedRetry(ctx context.Context, s *selection, _ *cli.Context) error {
	return changeParked(ctx, s, "due now", s.parked().Retry, nil)
}

func runParkedDrop(ctx context.Context, s *selection, c *cli.Context) error {
	return changeParked(ctx, s, "dropped", s.parked().Drop, func(n int) error {
		return s.confirm(c, "Give up %s of %s/%s for good?", words.Plural(n, "event"), s.stream, s.processor)
	})
}

// changedEvents is what `parked retry` and `parked drop` print.
type changedEvents struct {
	Stream    string   `json:"stream"`
	Processor string   `json:"processor"`
	Events    []string `json:"events"` // as they are listed
}

// changeParked changes the selected events, part by part, once sure has agreed, and names those
// that it changed.
func changeParked(ctx context.Context, s *selection, did string, do func(context.Context, []admin.ParkedEvent) ([]admin.ParkedEvent, error), sure func(n int) error) error {
	events, err := s.parked().List(ctx, &s.filter)
	s.far.done()
	if err == nil && len(events) > 0 && sure != nil {
		err = sure(len(events))
	}
	if err != nil {
		return err
	}
	changed, err := inParts(ctx, s.far, did, events, do)
	done := changedEvents{s.stream, s.processor, []string{}}
	for _, e := range changed {
		done.Events = append(done.Events, e.Event)
	}
	what := words.Plural(len(done.Events), "event") + " " + did
	return errors.Join(err, unwritten(what, s.out.table(done, func(t table) {
		for _, id := range done.Events {
			t.linef("%s", id)
		}
		t.linef("%s", what)
	})))
}
