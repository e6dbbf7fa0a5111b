package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/rules"
	"github.com/runnel-go/runnel/internal/words"
)

const (
	flagReadOnly = "read-only"

	// topCount bounds how many entries of a partition each look counts where Redis does not
	// know the lag.
	topCount = 1000
	// topPatience is how long one look may take. top reports a server that hangs long before.
	topPatience = 30 * time.Second
)

func topCommand(p *program) *cobra.Command {
	return p.command("top [STREAM[/PROCESSOR]]", "watch processors, partitions and members live, with rates and lag; pause and resume them", flagList{
		newFlag(flagEvery, 2*time.Second, "how often to look, as a `DURATION`"),
		internalFlag(),
		newFlag(flagReadOnly, false, "only watch: refuse to pause and resume"),
	}, runTop,
		"PROG top",
		"PROG top orders/printer --every 500ms",
		"PROG top --read-only",
		"PROG top --output json")
}

func runTop(ctx context.Context, s *session, c *call) error {
	every, err := everyOf(c)
	if err != nil {
		return err
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	watch := inspect.NewWatch(s.client, s.stream, c.Bool(flagAll), topCount)
	sample, err := watch.Look(ctx)
	if err != nil {
		return err
	}
	if _, err := s.find(ctx, sample.App); err != nil {
		return err
	}
	if s.out.json || !isTerminal(s.out.w) || !isTerminal(s.stdin) || os.Getenv("TERM") == "dumb" {
		return topOnce(ctx, s, watch, every)
	}
	m := newTopModel(every, rules.Whoami(), c.Bool(flagReadOnly))
	m.sampled(sample, time.Now())
	if s.processor != "" {
		m.enter(s.stream, s.processor)
	}
	return topLive(ctx, s, watch, m)
}

// topOnce waits until there are rates, and writes one sample.
func topOnce(ctx context.Context, s *session, watch *inspect.Watch, every time.Duration) error {
	if !monotime.Sleep(ctx, every) {
		return ctx.Err()
	}
	sample, err := watch.Look(ctx)
	if err != nil {
		return err
	}
	i, err := s.find(ctx, sample.App)
	if err != nil {
		return err
	}
	if i >= 0 {
		only, rates := &sample.App.Streams[0], &sample.Rates[0]
		only.Processors, rates.Processors = only.Processors[i:i+1], rates.Processors[i:i+1]
	}
	return s.out.table(sample, func(t table) { writeTop(t, sample, i >= 0, time.Now()) })
}

// writeTop writes a sample as a table of processors, or of the partitions of the only one.
func writeTop(t table, sample *inspect.Sample, partitions bool, now time.Time) {
	writeApp(t, sample.App)
	if sample.App.RulesErr != "" {
		t.linef("what is paused or blocked cannot be read: %s", words.Summary(sample.App.RulesErr))
	}
	heads, rows := processorHeads, processorRows(sample, nil)
	if partitions {
		heads, rows = partitionHeads, partitionRows(sample, 0, 0, now)
	}
	line := func(cell func(int) string) {
		var cells []string
		for i, h := range heads {
			if h.title != trendTitle { // two looks make no trend
				cells = append(cells, printable(cell(i)))
			}
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	line(func(i int) string { return heads[i].title })
	for _, r := range rows {
		line(func(i int) string { return r.cells[i] })
	}
}
