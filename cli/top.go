package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/rules"
	"github.com/runnel-go/runnel/internal/words"
)

const (
	flagReadOnly = "read-only"

	// topCount is how many entries of a partition are counted, at each look, where Redis
	// does not know the lag.
	topCount = 1000
	// topPatience is how long one look may take; a server that hangs is told long before.
	topPatience = 30 * time.Second
)

func topCommand(p *program) *cli.Command {
	return p.command(&cli.Command{
		Name:      "top",
		Usage:     "watch processors, partitions and members live, with rates and lag; pause and resume them",
		ArgsUsage: "[STREAM[/PROCESSOR]]",
		Flags: []cli.Flag{
			&cli.DurationFlag{Name: flagEvery, Value: 2 * time.Second, Usage: "how often to look, as a `DURATION`"},
			&cli.BoolFlag{Name: flagReadOnly, DisableDefaultText: true, Usage: "only watch: refuse to pause and resume"},
		},
		Action: p.action(runTop),
	},
		"PROG top",
		"PROG top orders/printer --every 500ms",
		"PROG top --read-only",
		"PROG top --output json")
}

func runTop(ctx context.Context, s *session, c *cli.Context) error {
	if err := onlyTarget(c); err != nil {
		return err
	}
	every, err := everyOf(c)
	if err != nil {
		return err
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	stream, processor, _ := strings.Cut(c.Args().First(), "/")
	watch := inspect.NewWatch(s.client, stream, topCount)
	sample, err := s.firstSample(ctx, watch, stream, processor)
	if err != nil {
		return err
	}
	if s.out.json || !isTerminal(s.out.w) || !isTerminal(s.stdin) || os.Getenv("TERM") == "dumb" {
		return s.topOnce(ctx, watch, every, processor)
	}
	m := newTopModel(every, rules.Whoami(), c.Bool(flagReadOnly))
	m.sampled(sample, time.Now())
	if processor != "" {
		m.enter(stream, processor)
	}
	return s.topLive(ctx, watch, m)
}

// firstSample looks once, and refuses names that are not there.
func (s *session) firstSample(ctx context.Context, watch *inspect.Watch, stream, processor string) (*inspect.Sample, error) {
	sample, err := watch.Look(ctx)
	switch {
	case err != nil:
		return nil, err
	case stream == "":
		return sample, nil
	case len(sample.App.Streams) == 0:
		return nil, s.noStream(ctx, stream)
	}
	only := &sample.App.Streams[0]
	if processor != "" && !slices.ContainsFunc(only.Processors, func(p inspect.ProcessorState) bool { return p.Processor == processor }) {
		return nil, noProcessor(only, processor)
	}
	return sample, nil
}

// topOnce waits until there are rates, and writes one sample.
func (s *session) topOnce(ctx context.Context, watch *inspect.Watch, every time.Duration, processor string) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(every):
	}
	sample, err := watch.Look(ctx)
	if err != nil {
		return err
	}
	if processor != "" {
		if err := narrow(sample, processor); err != nil {
			return err
		}
	}
	return s.out.write(sample, func(w io.Writer) error { return writeTop(w, sample, processor != "", time.Now()) })
}

// narrow leaves only one processor in the sample of one stream.
func narrow(sample *inspect.Sample, processor string) error {
	for i := range sample.App.Streams {
		of, rates := &sample.App.Streams[i], &sample.Rates[i]
		if n := slices.IndexFunc(of.Processors, func(p inspect.ProcessorState) bool { return p.Processor == processor }); n >= 0 {
			of.Processors, rates.Processors = of.Processors[n:n+1], rates.Processors[n:n+1]
			return nil
		}
	}
	return errors.New("it was removed meanwhile")
}

// writeTop writes a sample as a plain table: of processors, or of the partitions of
// the only one.
func writeTop(w io.Writer, sample *inspect.Sample, partitions bool, now time.Time) error {
	a := sample.App
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	printf(t, "app %s, redis %s, leader %s\n", a.App, a.Redis, words.Dash(a.Leader))
	if a.LeaderErr != "" {
		printf(t, "who leads cannot be told: %s\n", a.LeaderErr)
	}
	if a.RulesErr != "" {
		printf(t, "what is paused or blocked cannot be told: %s\n", words.Summary(a.RulesErr))
	}
	heads, rows := processorHeads, processorRows(sample, nil)
	if partitions {
		heads, rows = partitionHeads, partitionRows(sample, 0, 0, now)
	}
	shown := func(i int) bool { return heads[i].title != trendTitle } // there is none after two looks
	line := func(cell func(int) string) {
		var cells []string
		for i := range heads {
			if shown(i) {
				cells = append(cells, printable(cell(i)))
			}
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	line(func(i int) string { return heads[i].title })
	for _, r := range rows {
		line(func(i int) string { return r.cells[i] })
	}
	return t.Flush()
}
