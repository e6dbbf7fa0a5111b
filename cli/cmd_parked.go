package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/targets"
	"github.com/runnel-go/runnel/internal/words"
)

func parkedCommand(p *program) *cobra.Command {
	flags := func(more ...*pflag.Flag) flagList {
		return selectionFlags(append(more, newFlag(flagError, "", "only those whose error contains this `TEXT`"))...)
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

// parked is what waits for another attempt at the target.
func (s *selection) parked() (extension.FailureStore, error) {
	if s.target.Parked == nil {
		return nil, fmt.Errorf("at %s/%s nothing waits for another attempt by itself", s.stream, s.processor)
	}
	return s.target.Parked, nil
}

// listed are the selected ones of a store.
func (s *selection) listed(ctx context.Context, in extension.FailureStore) ([]extension.Failure, error) {
	all, err := targets.Chosen(ctx, in, s.filter)
	s.far.done()
	return all, err
}

func runParkedLs(ctx context.Context, s *selection, _ *call) error {
	parked, err := s.parked()
	if err != nil {
		return err
	}
	all, err := s.listed(ctx, parked)
	if err != nil {
		return err
	}
	return s.out.table(all, func(t table) {
		fmt.Fprintln(t, "ID\tKEY\tATTEMPTS\tSTATE\tLAST FAILURE\tERROR")
		for _, f := range all {
			state := f.State
			if state == extension.Waiting {
				state = "waits " + words.Short(time.Duration(f.In)*time.Millisecond)
			}
			t.row(f.ID, words.Dash(f.Key), f.Attempts, state, words.Ago(time.Now(), f.Last), words.Dash(words.Summary(f.Error)))
		}
	})
}

func runParkedRetry(ctx context.Context, s *selection, _ *call) error {
	return changeParked(ctx, s, "due now", extension.FailureStore.Retry, nil)
}

func runParkedDrop(ctx context.Context, s *selection, c *call) error {
	return changeParked(ctx, s, "dropped", extension.FailureStore.Drop, func(n int) error {
		return s.confirm(c, "Give up %s of %s/%s for good?", words.Plural(n, s.target.Noun), s.stream, s.processor)
	})
}

// changedEvents is what `parked retry` and `parked drop` print.
type changedEvents struct {
	Stream    string   `json:"stream"`
	Processor string   `json:"processor"`
	Events    []string `json:"events"` // as they are listed
}

// changeParked changes what is selected, part by part, once sure has agreed, and names what it changed.
func changeParked(ctx context.Context, s *selection, did string, do func(extension.FailureStore, context.Context, []extension.Failure) ([]extension.Failure, error), sure func(n int) error) error {
	parked, err := s.parked()
	if err != nil {
		return err
	}
	all, err := s.listed(ctx, parked)
	if err == nil && len(all) > 0 && sure != nil {
		err = sure(len(all))
	}
	if err != nil {
		return err
	}
	changed, err := inParts(ctx, s.far, did, all, func(ctx context.Context, part []extension.Failure) ([]extension.Failure, error) {
		return do(parked, ctx, part)
	})
	done := changedEvents{s.stream, s.processor, []string{}}
	for _, f := range changed {
		done.Events = append(done.Events, f.ID)
	}
	what := words.Plural(len(done.Events), s.target.Noun) + " " + did
	return errors.Join(err, unwritten(what, s.out.table(done, func(t table) {
		for _, id := range done.Events {
			t.linef("%s", id)
		}
		t.linef("%s", what)
	})))
}
