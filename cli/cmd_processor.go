package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/words"
	"github.com/runnel-go/runnel/rebalance"
)

func processorCommand(p *program) *cobra.Command {
	ls := p.command("ls [STREAM]", "list processors: members, owned partitions, lag, what is parked, dead or quarantined", flagList{internalFlag()}, connected(runProcessorLs),
		"PROG processor ls",
		"PROG processor ls orders --output json")
	info := p.command("info STREAM/PROCESSOR", "show a processor with its members and all about its partitions", nil, connected(runProcessorInfo),
		"PROG processor info orders/printer",
		"PROG processor info orders/printer --output json")
	move := p.command("move STREAM/PROCESSOR PARTITIONS [WORKER]", "pin partitions to a worker, for as long as it runs: whatever else moves, these do not",
		flagList{newFlag("unpin", false, "remove the pins: the partitions may move again")}, runMove,
		"PROG processor move orders/printer 3,7 web-1",
		"PROG processor move orders/printer 0-3 web-1",
		"PROG processor move orders/printer 0-15 --unpin")
	return p.group("processor", "look after a processor", ls, info, move, resetCommand(p), removeCommand(p))
}

// A listedProcessor is what `processor ls` prints.
type listedProcessor struct {
	Stream     string         `json:"stream"`
	Processor  string         `json:"processor"`
	Generation int64          `json:"generation"`
	Members    int            `json:"members"`
	Partitions int            `json:"partitions"`
	Held       int            `json:"held"` // partitions that are paused or blocked
	Totals     inspect.Totals `json:"totals"`
}

func runProcessorLs(ctx context.Context, s *session, c *call) error {
	state, err := s.look(ctx, 0)
	if err != nil {
		return err
	}
	if s.stream == "" && !c.Bool(flagAll) {
		state.HideInternal()
	}
	list := []listedProcessor{}
	for _, p := range state.Processors() {
		one := listedProcessor{
			Stream: p.Stream, Processor: p.Processor, Generation: p.Generation, Members: len(p.Members), Partitions: len(p.Partitions), Totals: p.Totals,
		}
		for _, part := range p.Partitions {
			if part.Held != "" {
				one.Held++
			}
		}
		list = append(list, one)
	}
	return s.out.table(list, func(t table) {
		out := slices.ContainsFunc(list, func(p listedProcessor) bool { return p.Totals.Outputs > 0 })
		t.row(insertOut(out, 10, outTitle, "PROCESSOR", "MEMBERS", "OWNED", "PENDING", "LAG", "AGE", "DELAYED", "PARKED", "DEAD", "LOST", "HELD", "QUARANTINED")...)
		for _, p := range list {
			sum := p.Totals
			t.row(insertOut(out, 10, sum.Outputs, p.Stream+"/"+p.Processor, p.Members, fmt.Sprintf("%d of %d", sum.Owned, p.Partitions), known(sum.Pending, "-"),
				words.AtLeast(sum.Lag, sum.LagMore), ageOf(sum.Age, sum.Lag > 0), sum.Delayed, sum.Parked, sum.Dead, sum.Lost, p.Held, sum.Quarantined)...)
		}
	})
}

func runProcessorInfo(ctx context.Context, s *session, _ *call) error {
	state, err := s.look(ctx, 0)
	if err != nil {
		return err
	}
	p := &state.Streams[0].Processors[0]
	m, err := s.metadata(ctx, s.stream)
	if err != nil {
		return err
	}
	p.Tables = inspect.Tables(ctx, s.client, s.stream, m, s.processor)
	return s.out.table(p, func(t table) {
		for _, r := range state.Rules {
			t.linef("%s", ruleText(r))
		}
		writeProcessor(t, p, true, time.Now())
		if len(p.Tables) > 0 {
			t.Flush() // the next table has other columns
			fmt.Fprintln(t)
			writeTables(t, p.Tables)
		}
	})
}

func runMove(ctx context.Context, s *session, c *call) error {
	which, worker, unpin := c.arg(1), c.arg(2), c.Bool("unpin")
	if s.stream == "" || s.processor == "" || which == "" || unpin && len(c.args) != 2 || !unpin && len(c.args) != 3 {
		return usagef(c, "say STREAM/PROCESSOR, partitions such as 0-3,7, and a worker or --unpin")
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	st, err := s.admin.Stream(ctx, s.stream)
	if err != nil {
		return err
	}
	numbers, err := numbersOf(which, st.Partitions)
	if err != nil {
		return usagef(c, "%w", err)
	}
	done, text := admin.Assignment{}, "are not pinned any more"
	if unpin {
		done, err = s.admin.Workers().Unpin(ctx, s.stream, s.processor, numbers...)
	} else {
		done, err = s.admin.Workers().Pin(ctx, admin.WorkerOf{Name: worker, Stream: s.stream, Processor: s.processor}, numbers...)
		text = "are pinned to worker " + done.Worker
	}
	if err != nil {
		return err
	}
	return s.out.line(done, "%s/%s: partitions %s %s", s.stream, s.processor, rebalance.Ranges(numbers), text)
}
