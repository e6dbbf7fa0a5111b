package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/words"
)

const flagToPython = "to-python"

func removeCommand(p *program) *cobra.Command {
	return p.command("rm STREAM/PROCESSOR|STREAM/GROUP", "forget a processor that no worker runs any more, or another consumer group, so that trimming does not wait for it", flagList{
		yesFlag(),
		newFlag("dead", false, "remove its dead letters, too"),
		newFlag(flagRows, false, "remove the rows of its tables, too; without it a processor whose tables have rows stays"),
		newFlag(flagToPython, false, "leave a consumer group from which Python's runnel goes on under the same name"),
	}, connected(runRemove),
		"PROG processor rm orders/old --yes",
		"PROG processor rm orders/old --yes --dead --rows",
		"PROG processor rm orders/printer --to-python --yes")
}

func runRemove(ctx context.Context, s *session, c *call) error {
	stream, processor := s.stream, s.processor
	st, err := s.admin.Stream(ctx, stream)
	if err != nil {
		return err
	}
	if !slices.Contains(st.Processors, processor) {
		return runRemoveGroup(ctx, s, c, stream, processor)
	}
	name, opts := stream+"/"+processor, admin.RemoveOptions{DryRun: true, Dead: c.Bool("dead"), Rows: c.Bool(flagRows), ToPython: c.Bool(flagToPython)}
	gone, err := s.admin.RemoveProcessor(ctx, stream, processor, &opts)
	if err != nil {
		return err
	}
	if !gone.Python {
		if err := confirmRemoval(s, c, name, gone); err != nil {
			return err
		}
	}
	opts.DryRun = false
	if gone, err = s.admin.RemoveProcessor(ctx, stream, processor, &opts); err != nil {
		return rulesLeft(s, err)
	}
	s.far.done()
	switch {
	case gone.Python:
		return s.out.line(gone, "%s is no processor of this app any more; Python's runnel, which runs it, goes on", name)
	case opts.ToPython:
		return s.out.line(gone, "%s left to Python's runnel, with all that waits for it; %d parked, %s removed%s%s", name, gone.Parked, words.Plural(gone.Dead, "dead letter"), alsoRows(", ", gone.Rows), alsoOutputs(gone.Outputs))
	}
	return s.out.line(gone, "%s removed; %s unprocessed, %d parked, %s removed%s%s%s", name, words.Plural(gone.Lag, "event"), gone.Parked, words.Plural(gone.Dead, "dead letter"), alsoRows(", ", gone.Rows), alsoRules(gone.Rules), alsoOutputs(gone.Outputs))
}

// alsoRows names rows behind other things, "" for none.
func alsoRows(and string, n int64) string {
	if n == 0 {
		return ""
	}
	return and + words.Plural(n, "row")
}

// rulesLeft adds to an error the command that lists the rules that were left behind.
func rulesLeft(s *session, err error) error {
	if left := (*admin.RulesLeftError)(nil); errors.As(err, &left) {
		return fmt.Errorf("%w; `%s rules ls` lists them with what ends each", err, s.prefix())
	}
	return err
}

func alsoRules(n int) string {
	if n == 0 {
		return ""
	}
	return ", " + words.Plural(n, "rule")
}

func alsoOutputs(n int64) string {
	if n == 0 {
		return ""
	}
	return "; " + words.Plural(n, "output") + " brought away from outboxes"
}

// confirmRemoval asks before a removal loses anything. Events that Python's runnel takes over are not
// lost.
func confirmRemoval(s *session, c *call, name string, gone admin.RemovedProcessor) error {
	if !c.Bool(flagToPython) {
		return s.confirm(c, "Forget %s, with its position, %s that it has not processed, %d of them parked, and %s%s?",
			name, words.Plural(gone.Lag+gone.Parked, "event"), gone.Parked, words.Plural(gone.Dead, "dead letter"), alsoRows(" and ", gone.Rows))
	}
	if gone.Parked+gone.Dead+gone.Rows == 0 {
		return nil
	}
	return s.confirm(c, "Leave %s to Python's runnel, and give up %s and %s%s?", name, words.Plural(gone.Parked, "parked event"), words.Plural(gone.Dead, "dead letter"), alsoRows(" and ", gone.Rows))
}

// runRemoveGroup destroys a consumer group of no registered processor.
func runRemoveGroup(ctx context.Context, s *session, c *call, stream, name string) error {
	gone, err := s.admin.RemoveGroup(ctx, stream, name, &admin.RemoveOptions{DryRun: true})
	if err == nil && c.Bool(flagToPython) {
		err = fmt.Errorf("%s/%s is a consumer group of %s, and no processor of this app: there is nothing to leave to Python's runnel", stream, name, gone.Who)
	}
	if err == nil {
		err = s.confirm(c, "Destroy consumer group %s of stream %s (%s), which has not acked %s, with its position?", name, stream, gone.Who, words.Plural(gone.Lag, "event"))
	}
	if err == nil {
		gone, err = s.admin.RemoveGroup(ctx, stream, name, nil)
	}
	if err != nil {
		return err
	}
	return s.out.line(gone, "consumer group %s of stream %s destroyed; %s not acked", name, stream, words.Plural(gone.Lag, "event"))
}
