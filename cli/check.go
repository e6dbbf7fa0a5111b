package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/inspect"
)

const (
	flagMaxLag  = "max-lag"
	flagMaxAge  = "max-age"
	flagMaxDead = "max-dead"
	flagMaxLost = "max-lost"

	// unownedFor is how old an event of a partition without an owner may be: a takeover
	// from a worker that died takes about as long as its lease.
	unownedFor = time.Minute

	// exitThreshold is the exit code of a check that found something.
	exitThreshold exitCode = 3
)

func (p *program) check() *cli.Command {
	return p.command(&cli.Command{
		Name:      "check",
		Usage:     "for monitoring: exit with 3 if nothing processes, processors are too far behind, events were lost or forgotten, Redis evicts, or partitions are quarantined or held",
		ArgsUsage: "[STREAM[/PROCESSOR]]",
		Flags: []cli.Flag{
			&cli.Int64Flag{Name: flagMaxLag, DefaultText: "any", Usage: "largest `LAG` of a processor, in events"},
			&cli.DurationFlag{Name: flagMaxAge, DefaultText: "any", Usage: "largest age of an event that is not acked, as a `DURATION`"},
			&cli.Int64Flag{Name: flagMaxDead, DefaultText: "any", Usage: "largest `NUMBER` of dead letters of a processor"},
			&cli.Int64Flag{Name: flagMaxLost, Usage: "largest `NUMBER` of events of a processor that were removed before they were processed"},
		},
		Action: p.action(runCheck),
	},
		"PROG check --max-lag 10000 --max-age 5m",
		"PROG check orders/printer --max-dead 0 --output json")
}

// A finding is something that a check complains about.
type finding struct {
	Stream    string `json:"stream"`
	Processor string `json:"processor"`           // "" where the stream has none
	Partition *int   `json:"partition,omitempty"` // nil: all together
	What      string `json:"what"`                // "lag", "age", "dead", "lost", "quarantine", "halt", "held", "forgotten", "eviction", "workers", "owner", "partitions" or "processors"
	Value     int64  `json:"value"`               // events, or ms
	Limit     int64  `json:"limit"`
	Text      string `json:"text"`
}

// A verdict is the outcome of a check.
type verdict struct {
	OK         bool          `json:"ok"`
	Findings   []finding     `json:"findings"`
	Processors []checkedProc `json:"processors"`
}

type checkedProc struct {
	Stream    string         `json:"stream"`
	Processor string         `json:"processor"`
	Totals    inspect.Totals `json:"totals"`
}

func runCheck(ctx context.Context, s *session, c *cli.Context) error {
	if err := onlyTarget(c); err != nil {
		return err
	}
	for _, name := range []string{flagMaxLag, flagMaxDead, flagMaxLost} {
		if c.Int64(name) < 0 {
			return usagef(c, "--%s %d is below 0", name, c.Int64(name))
		}
	}
	if c.Duration(flagMaxAge) < 0 {
		return usagef(c, "--%s %v is below 0", flagMaxAge, c.Duration(flagMaxAge))
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	// Where entries have to be counted, count as far as the answer depends on it.
	state, err := s.look(ctx, c.Args().First(), max(c.Int64(flagMaxLag)+1, inspect.CountAtMost))
	if err != nil {
		return err
	}
	if len(state.Streams) == 0 {
		return fmt.Errorf("app %s has no streams at redis %s: is that its name, and its Redis? A stream is there once its app has sent to it or run a worker", state.App, state.Redis)
	}
	v := verdict{Processors: []checkedProc{}}
	if err := unread(state); err != nil {
		return err
	}
	if v.Findings, err = morePartitions(ctx, s, state); err != nil {
		return err
	}
	for _, st := range state.Streams {
		if len(st.Processors) == 0 {
			v.Findings = append(v.Findings, finding{Stream: st.Stream, What: "processors", Value: st.Length,
				Text: fmt.Sprintf("stream %s: it has no processor: start the workers that process it", st.Stream)})
		}
		for i := range st.Processors {
			p := &st.Processors[i]
			if p.MembersErr != "" {
				return errors.New(p.MembersErr)
			}
			for _, part := range p.Partitions {
				if part.Err != "" { // the rest may be fine or not: this is no answer
					return fmt.Errorf("partition %d cannot be looked at: %s", part.Partition, part.Err)
				}
			}
			v.Findings = append(v.Findings, findings(c, p)...)
			v.Processors = append(v.Processors, checkedProc{p.Stream, p.Processor, p.Totals})
		}
	}
	v.Findings = append(v.Findings, evictions(state)...)
	v.OK = len(v.Findings) == 0
	if err := s.out.write(v, v.text); err != nil || v.OK {
		return err
	}
	return exitThreshold
}

// unread is the first thing of an app that belongs to no processor and cannot be read.
func unread(state *inspect.AppState) error {
	for _, stream := range slices.Sorted(maps.Keys(state.Unreadable)) {
		return errors.New(state.Unreadable[stream])
	}
	if state.LeaderErr != "" { // leader-only tasks run nowhere
		return errors.New(state.LeaderErr)
	}
	if state.RulesErr != "" { // partitions may be held, or wait for a new owner that knows
		return errors.New(state.RulesErr)
	}
	return nil
}

// morePartitions finds the streams of which Redis has more partitions than the app.
func morePartitions(ctx context.Context, s *session, state *inspect.AppState) ([]finding, error) {
	out, own := []finding{}, map[string]int{}
	for _, st := range state.Streams {
		own[st.Stream] = st.Partitions
	}
	more, err := s.client.MorePartitions(ctx, own)
	for _, stream := range slices.Sorted(maps.Keys(more)) {
		e := more[stream]
		out = append(out, finding{Stream: stream, What: "partitions", Value: int64(e.There), Limit: int64(e.Own), Text: e.Error()})
	}
	return out, err
}

// evictions finds the servers that may evict keys as they are set now.
func evictions(state *inspect.AppState) (out []finding) {
	for _, e := range state.Evictions {
		if e.MaxMemory > 0 {
			out = append(out, finding{What: "eviction", Value: e.Evicted, Text: e.Text + ": events may vanish without an error; run CONFIG SET maxmemory-policy noeviction there"})
		}
	}
	return out
}

// findings are what a processor is complained about for.
func findings(c *cli.Context, p *inspect.ProcessorState) (out []finding) {
	add := func(partition *int, what string, value, limit int64, format string, args ...any) {
		where := fmt.Sprintf("stream %s: processor %s", p.Stream, p.Processor)
		if partition != nil {
			where = fmt.Sprintf("stream %s partition %d: processor %s", p.Stream, *partition, p.Processor)
		}
		out = append(out, finding{p.Stream, p.Processor, partition, what, value, limit, where + ": " + fmt.Sprintf(format, args...)})
	}
	working := p.Working()
	if working == 0 {
		add(nil, "workers", 0, 0, "no worker runs it: start one")
	}
	if limit := c.Int64(flagMaxLag); c.IsSet(flagMaxLag) && p.Totals.Lag > limit {
		add(nil, "lag", p.Totals.Lag, limit, "lag %s is above %d", atLeast(p.Totals.Lag, p.Totals.LagMore), limit)
	}
	if limit := c.Int64(flagMaxDead); c.IsSet(flagMaxDead) && p.Totals.Dead > limit {
		add(nil, "dead", p.Totals.Dead, limit, "%s, above %d; see dead ls %s/%s", plural(p.Totals.Dead, "dead letter"), limit, p.Stream, p.Processor)
	}
	if limit := c.Int64(flagMaxLost); p.Totals.Lost > limit {
		add(nil, "lost", p.Totals.Lost, limit, "%s lost, removed before they were processed, above %d; --%s %d accepts that",
			plural(p.Totals.Lost, "event"), limit, flagMaxLost, p.Totals.Lost)
	}
	for i := range p.Partitions {
		s := &p.Partitions[i]
		age := time.Duration(s.Age) * time.Millisecond
		if limit := c.Duration(flagMaxAge); c.IsSet(flagMaxAge) && age > limit {
			add(&s.Partition, "age", s.Age, limit.Milliseconds(), "event %s has not been acked for %s, above %s (%s)", entryid.EventID(s.Partition, s.Oldest), shortly(age), limit, stateOf(s, time.Now()))
		}
		if working > 0 && s.Executor == "" && age > unownedFor {
			add(&s.Partition, "owner", s.Age, unownedFor.Milliseconds(), "no worker owns it, and event %s has not been acked for %s; see /readyz and the log of the workers", entryid.EventID(s.Partition, s.Oldest), shortly(age))
		}
		if q := s.Halt; q != nil {
			add(&s.Partition, "halt", 1, 0, "worker %s halted at event %s at %s: %s; %s", dash(q.Worker), q.Event, q.At.Format(time.RFC3339), reasonOf(q.Event, q.Reason),
				passOver(p.Stream, p.Processor, q.Event))
		}
		if q := s.Quarantine; q != nil {
			add(&s.Partition, "quarantine", 1, 0, "quarantined since %s, at event %s: %s", q.At.Format(time.RFC3339), dash(q.Event), reasonOf(q.Event, q.Reason))
		}
		if f := s.Forgotten; f != nil {
			add(&s.Partition, "forgotten", 1, 0, "at %s Redis had forgotten events: %s; this is shown for a day", f.At.Format(time.RFC3339), f.Text)
		}
		if s.Held != "" {
			add(&s.Partition, "held", 1, 0, "held back by a %s; see rules ls", s.Held)
		}
	}
	return out
}

func (v verdict) text(w io.Writer) error {
	var lag, oldest int64
	more := false
	for _, p := range v.Processors {
		lag, more, oldest = lag+p.Totals.Lag, more || p.Totals.LagMore, max(oldest, p.Totals.Age)
	}
	word := "OK"
	if !v.OK {
		word = plural(len(v.Findings), "finding")
	}
	printf(w, "%s: %s, lag %s, oldest unacked event %s\n", word, plural(len(v.Processors), "processor"), atLeast(lag, more), ageOf(oldest, lag > 0))
	for _, f := range v.Findings {
		if _, err := printf(w, "%s\n", f.Text); err != nil {
			return err
		}
	}
	return nil
}
