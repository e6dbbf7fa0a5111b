package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/words"
	"github.com/runnel-go/runnel/rebalance"
)

const (
	flagWatch = "watch"
	flagEvery = "every"
)

func (p *program) status() *cli.Command {
	return p.command(&cli.Command{
		Name:      "status",
		Usage:     "show how the app does, in ten lines; of a stream or a processor all: workers, owners, lag, what is parked, dead or held, and why",
		ArgsUsage: "[STREAM[/PROCESSOR]]",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: flagWatch, DisableDefaultText: true, Usage: "show it again and again, until interrupted"},
			&cli.DurationFlag{Name: flagEvery, Value: 2 * time.Second, Usage: "with --watch: how often, as a `DURATION`"},
		},
		Action: p.action(runStatus),
	},
		"PROG status",
		"PROG status orders",
		"PROG status orders/printer --watch",
		"PROG status --output json")
}

func runStatus(ctx context.Context, s *session, c *cli.Context) error {
	if err := onlyTarget(c); err != nil {
		return err
	}
	every, err := everyOf(c)
	if err != nil {
		return err
	}
	if c.IsSet(flagEvery) && !c.Bool(flagWatch) {
		return usagef(c, "--%s goes with --%s", flagEvery, flagWatch)
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	if !c.Bool(flagWatch) {
		return showStatus(ctx, s, c.Args().First())
	}
	for {
		if !s.out.json && isTerminal(s.out.w) {
			fmt.Fprint(raw(s.out.w), "\x1b[H\x1b[2J\x1b[3J") // home, and an empty screen
		}
		if err := showStatus(ctx, s, c.Args().First()); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

// onlyTarget refuses what is no [STREAM[/PROCESSOR]].
func onlyTarget(c *cli.Context) error {
	if c.NArg() > 1 {
		return usagef(c, "unexpected argument %q", c.Args().Get(1))
	}
	if strings.HasPrefix(c.Args().First(), "/") {
		return usagef(c, "%q names no stream: say STREAM or STREAM/PROCESSOR", c.Args().First())
	}
	return nil
}

// everyOf is how often to look.
func everyOf(c *cli.Context) (time.Duration, error) {
	every := c.Duration(flagEvery)
	if every < 100*time.Millisecond {
		return 0, usagef(c, "--%s %v is below 100ms", flagEvery, every)
	}
	return every, nil
}

// showStatus writes the state of what was asked for: an app, a stream or a processor.
func showStatus(ctx context.Context, s *session, what string) error {
	state, err := s.look(ctx, what, 0)
	if err != nil {
		return err
	}
	if what == "" && !s.out.wide && !s.out.json {
		return s.out.write(state, briefOf(ctx, s.client, state).write)
	}
	return s.out.write(state, func(w io.Writer) error { return writeStatus(w, state, s.out.wide, time.Now()) })
}

// look returns the state of the app, or of the stream or processor that an argument
// STREAM[/PROCESSOR] names. count is as for inspect.App.
func (s *session) look(ctx context.Context, what string, count int64) (*inspect.AppState, error) {
	stream, processor, _ := strings.Cut(what, "/")
	state, err := inspect.App(ctx, s.client, stream, count)
	if err != nil {
		return nil, err
	}
	if stream != "" && len(state.Streams) == 0 {
		return nil, s.noStream(ctx, stream)
	}
	if state.Evictions, err = inspect.Evictions(ctx, s.client); err != nil {
		return nil, err
	}
	if processor != "" {
		only := &state.Streams[0]
		i := slices.IndexFunc(only.Processors, func(p inspect.ProcessorState) bool { return p.Processor == processor })
		if i < 0 {
			return nil, noProcessor(only, processor)
		}
		only.Processors = only.Processors[i : i+1]
	}
	return state, nil
}

func noProcessor(s *inspect.StreamState, processor string) error {
	var there []string
	for _, p := range s.Processors {
		there = append(there, p.Processor)
	}
	return &admin.NotFoundError{Stream: s.Stream, Processor: processor, There: there}
}

func writeStatus(w io.Writer, a *inspect.AppState, wide bool, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	printf(t, "app %s, redis %s, leader %s\n", a.App, a.Redis, words.Dash(a.Leader))
	if a.LeaderErr != "" {
		printf(t, "who leads cannot be told: %s\n", a.LeaderErr)
	}
	if len(a.Streams)+len(a.Unreadable) == 0 {
		fmt.Fprintln(t, "no streams: a stream is there once its app has sent to it or run a worker")
	}
	for _, e := range a.Evictions {
		printf(t, "%s: events may vanish without an error; run CONFIG SET maxmemory-policy noeviction there\n", e.Text)
	}
	for _, r := range a.Rules {
		fmt.Fprintln(t, shown(ruleText(r)))
	}
	if a.RulesErr != "" {
		printf(t, "what is paused or blocked cannot be told, workers follow what they knew: %s\n", words.Summary(a.RulesErr))
	}
	for _, stream := range slices.Sorted(maps.Keys(a.Unreadable)) {
		printf(t, "\nstream %s cannot be told: %s\n", stream, a.Unreadable[stream])
	}
	for _, s := range a.Streams {
		printf(t, "\nstream %s: %d partitions, size %d, codec %s, partitioner %s, %d delayed\n", s.Stream, s.Partitions, s.Size, s.Codec, s.Partitioner, s.Delayed)
		if len(s.Processors) == 0 {
			fmt.Fprintln(t, "no processors")
		}
		for i := range s.Processors {
			fmt.Fprintln(t)
			writeProcessor(t, &s.Processors[i], wide, now)
		}
	}
	return t.Flush()
}

// goneOf tells of a worker that operators named whether it is there.
func goneOf(p *inspect.ProcessorState, worker string) string {
	if p.MembersErr != "" || slices.ContainsFunc(p.Members, func(m inspect.MemberState) bool { return m.Worker == worker }) {
		return ""
	}
	at, known := p.Gone[worker]
	if !known {
		return "; the worker is gone"
	}
	return fmt.Sprintf("; the worker is gone since %s, and this is forgotten from %s on", at.Format(time.RFC3339), at.Add(rebalance.ForgetAfter).Format(time.RFC3339))
}

// A steer is a drain or the pins of a worker: what it is, what ends it, and that the worker
// is gone, if so.
type steer struct{ what, ends, gone string }

func (s steer) String() string { return s.what + "; it ends with " + s.ends + s.gone }

// steering are the drains and pins of a processor.
func steering(p *inspect.ProcessorState) (out []steer) {
	for _, worker := range slices.Sorted(maps.Keys(p.Cordons)) {
		since := p.Cordons[worker].UTC().Format(time.RFC3339)
		out = append(out, steer{fmt.Sprintf("worker %s is drained since %s", worker, since), fmt.Sprintf("workers undrain %s", worker), goneOf(p, worker)})
	}
	for _, worker := range slices.Compact(slices.Sorted(maps.Values(p.Pins))) {
		var pinned []int
		for n, to := range p.Pins {
			if to == worker {
				pinned = append(pinned, n)
			}
		}
		ranges := rebalance.Ranges(pinned)
		unpin := fmt.Sprintf("processor move %s/%s %s --unpin", p.Stream, p.Processor, strings.ReplaceAll(ranges, " ", ","))
		out = append(out, steer{fmt.Sprintf("partitions %s are pinned to worker %s", ranges, worker), unpin, goneOf(p, worker)})
	}
	return out
}

func writeProcessor(t io.Writer, p *inspect.ProcessorState, wide bool, now time.Time) {
	printf(t, "processor %s/%s: generation %d, %s\n", p.Stream, p.Processor, p.Generation, words.Plural(len(p.Members), "member"))
	if p.MembersErr != "" {
		printf(t, "who the members are cannot be told: %s\n", p.MembersErr)
	}
	if len(p.Members) > 0 {
		fmt.Fprintln(t, "WORKER\tEXECUTOR\tASSIGNED\tJOINED\tHEARTBEAT")
	}
	for _, m := range p.Members {
		printf(t, "%s\t%s\t%d\t%s ago\t%s\n", m.Worker, m.Executor, len(m.Assigned), words.Short(now.Sub(m.JoinedAt)), beatOf(m))
	}
	for _, l := range steering(p) {
		printf(t, "%s\n", l)
	}
	fmt.Fprintln(t)
	writeRow(t, columnsOf(wide), func(c column) string { return c.title })
	for i := range p.Partitions {
		s := &p.Partitions[i]
		if s.Err != "" {
			printf(t, "%d\t%s\n", s.Partition, s.Err)
			continue
		}
		writeRow(t, columnsOf(wide), func(c column) string { return c.of(s, now) })
	}
	writeRow(t, columnsOf(wide), func(c column) string {
		if c.total == nil {
			return ""
		}
		return c.total(&p.Totals)
	})
	writeHeld(t, p)
	for _, s := range p.Partitions {
		if s.NotReading != nil {
			printf(t, "partition %d: reads of its owner, worker %s, have failed since %s; the log of that worker says why\n", s.Partition, words.Dash(s.Worker), s.NotReading.Format(time.RFC3339))
		}
		if s.RunningSince != nil {
			printf(t, "partition %d: its function has been running since %s, for %s\n", s.Partition, s.RunningSince.Format(time.RFC3339), words.Short(now.Sub(*s.RunningSince)))
		}
		if q := s.Halt; q != nil {
			printf(t, "partition %d: worker %s halted at event %s at %s: %s\n", s.Partition, words.Dash(q.Worker), q.Event, q.At.Format(time.RFC3339), words.Reason(q.Event, q.Reason))
			printf(t, "partition %d: %s\n", s.Partition, inspect.PassOver(p.Stream, p.Processor, q.Event))
		}
		if f := s.Forgotten; f != nil {
			printf(t, "partition %d: at %s Redis had forgotten events: %s\n", s.Partition, f.At.Format(time.RFC3339), f.Text)
		}
		if q := s.Quarantine; q != nil {
			printf(t, "partition %d is quarantined since %s by worker %s, at event %s: %s\n", s.Partition, q.At.Format(time.RFC3339), words.Dash(q.Worker), words.Dash(q.Event), words.Reason(q.Event, q.Reason))
		}
	}
}
