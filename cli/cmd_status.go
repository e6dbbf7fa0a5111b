package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/words"
	"github.com/runnel-go/runnel/rebalance"
)

const (
	flagWatch = "watch"
	flagEvery = "every"
)

func statusCommand(p *program) *cobra.Command {
	return p.command("status [STREAM[/PROCESSOR]]", "show how the app does, in ten lines; of a stream or a processor all: workers, owners, lag, what is parked, dead or held, and why", flagList{
		internalFlag(),
		newFlag(flagWatch, false, "show it again and again, until interrupted"),
		newFlag(flagEvery, 2*time.Second, "with --watch: how often, as a `DURATION`"),
	}, runStatus,
		"PROG status",
		"PROG status orders",
		"PROG status orders/printer --watch",
		"PROG status --output json")
}

func runStatus(ctx context.Context, s *session, c *call) error {
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
		return showStatus(ctx, s, c.Bool(flagAll))
	}
	for {
		if !s.out.json && isTerminal(s.out.w) {
			fmt.Fprint(raw(s.out.w), "\x1b[H\x1b[2J\x1b[3J") // home, and an empty screen
		}
		err := showStatus(ctx, s, c.Bool(flagAll))
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if !monotime.Sleep(ctx, every) {
			return nil
		}
	}
}

// everyOf reads --every.
func everyOf(c *call) (time.Duration, error) {
	every := c.Duration(flagEvery)
	if every < 100*time.Millisecond {
		return 0, usagef(c, "--%s %v is below 100ms", flagEvery, every)
	}
	return every, nil
}

// showStatus writes the state of what the argument names: an app, a stream or a processor. Of an app
// it leaves out internal streams unless all is set.
func showStatus(ctx context.Context, s *session, all bool) error {
	state, err := s.look(ctx, 0)
	if err != nil {
		return err
	}
	if s.stream == "" {
		state.Extensions = extension.Status(ctx, s.app, s.client)
		if !s.out.wide && !s.out.json {
			return s.out.table(state, s.brief(ctx, state, all).write)
		}
		if !all {
			state.HideInternal()
		}
	}
	return s.out.table(state, func(t table) { writeStatus(t, state, s.out.wide, time.Now()) })
}

func writeStatus(t table, a *inspect.AppState, wide bool, now time.Time) {
	writeApp(t, a)
	if len(a.Streams)+len(a.Unreadable) == 0 {
		t.linef("%s", noStreams)
	}
	for _, e := range a.Evictions {
		t.linef("%s: events may vanish without an error; run CONFIG SET maxmemory-policy noeviction there", e.Text)
	}
	writeExtensions(t, a)
	for _, r := range a.Rules {
		t.linef("%s", ruleText(r))
	}
	if a.RulesErr != "" {
		t.linef("what is paused or blocked cannot be read, workers follow what they read last: %s", words.Summary(a.RulesErr))
	}
	for _, stream := range slices.Sorted(maps.Keys(a.Unreadable)) {
		t.linef("\nstream %s cannot be read: %s", stream, a.Unreadable[stream])
	}
	for _, s := range a.Streams {
		t.linef("\nstream %s: %d partitions, size %d, codec %s, partitioner %s, %d delayed", s.Stream, s.Partitions, s.Size, s.Codec, s.Partitioner, s.Delayed)
		if len(s.Processors) == 0 {
			fmt.Fprintln(t, "no processors")
		}
		for i := range s.Processors {
			fmt.Fprintln(t)
			writeProcessor(t, &s.Processors[i], wide, now)
		}
	}
}

// writeExtensions writes what each extension has to say.
func writeExtensions(t table, a *inspect.AppState) {
	for _, name := range slices.Sorted(maps.Keys(a.Extensions)) {
		for _, line := range a.Extensions[name] {
			t.linef("%s", shown(line))
		}
	}
}

const noStreams = "no streams: a stream is there once its app has sent to it or run a worker"

// writeApp writes the first lines of status and top.
func writeApp(t table, a *inspect.AppState) {
	t.linef("app %s, redis %s, leader %s", a.App, a.Redis, words.Dash(a.Leader))
	if a.LeaderErr != "" {
		t.linef("who leads cannot be read: %s", a.LeaderErr)
	}
}

// goneOf says that a worker which operators named is gone, "" if it is not.
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

// A steer is a drain or the pins of a worker: what it is, the command that ends it, and whether the
// worker is gone.
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

func writeProcessor(t table, p *inspect.ProcessorState, wide bool, now time.Time) {
	t.linef("processor %s/%s: generation %d, %s", p.Stream, p.Processor, p.Generation, words.Plural(len(p.Members), "member"))
	if p.MembersErr != "" {
		t.linef("who the members are cannot be read: %s", p.MembersErr)
	}
	if len(p.Members) > 0 {
		fmt.Fprintln(t, "WORKER\tEXECUTOR\tASSIGNED\tJOINED\tHEARTBEAT")
	}
	for _, m := range p.Members {
		t.row(m.Worker, m.Executor, len(m.Assigned), words.Short(now.Sub(m.JoinedAt))+" ago", beatOf(m))
	}
	for _, l := range steering(p) {
		t.linef("%s", l)
	}
	fmt.Fprintln(t)
	writePartitions(t, p, wide, now)
	writeHeld(t, p)
	for i := range p.Partitions {
		for _, note := range notesOf(p, &p.Partitions[i], now) {
			t.linef("partition %d%s", p.Partitions[i].Partition, note)
		}
	}
}

// notesOf is what the columns leave out about a partition.
func notesOf(p *inspect.ProcessorState, s *inspect.PartitionState, now time.Time) (notes []string) {
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if s.NotReading != nil {
		note(": reads of its owner, worker %s, have failed since %s; the log of that worker says why", words.Dash(s.Worker), s.NotReading.Format(time.RFC3339))
	}
	if s.RunningSince != nil {
		note(": its function has been running since %s, for %s", s.RunningSince.Format(time.RFC3339), words.Short(now.Sub(*s.RunningSince)))
	}
	if h := s.Halt; h != nil {
		note(": %s", h.Halted())
		note(": %s", inspect.PassOver(p.Stream, p.Processor, h.Event))
	}
	if f := s.Forgotten; f != nil {
		note(": at %s Redis had forgotten events: %s", f.At.Format(time.RFC3339), f.Text)
	}
	if q := s.Quarantine; q != nil {
		note(" is quarantined since %s by worker %s, at event %s: %s", q.At.Format(time.RFC3339), words.Dash(q.Worker), words.Dash(q.Event), words.Reason(q.Event, q.Reason))
	}
	return notes
}

// writeHeld names the partitions that rules hold back.
func writeHeld(t table, p *inspect.ProcessorState) {
	for _, kind := range []string{"block", "pause"} {
		var held []int
		for _, s := range p.Partitions {
			if s.Held == kind {
				held = append(held, s.Partition)
			}
		}
		switch {
		case len(held) == 0:
		case len(held) == len(p.Partitions):
			t.linef("all partitions are %s", heldWord(kind))
		default:
			t.linef("partitions %s are %s", rebalance.Ranges(held), heldWord(kind))
		}
	}
}
