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

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/rstream"
)

const (
	flagMaxLag  = "max-lag"
	flagMaxAge  = "max-age"
	flagMaxDead = "max-dead"

	// exitThreshold is the exit code of a check that found something.
	exitThreshold exitCode = 3
)

func (p *program) check() *cli.Command {
	return p.command(&cli.Command{
		Name:      "check",
		Usage:     "for monitoring: exit with 3 if processors are too far behind, or partitions are quarantined",
		ArgsUsage: "[STREAM[/PROCESSOR]]",
		Flags: []cli.Flag{
			&cli.Int64Flag{Name: flagMaxLag, DefaultText: "any", Usage: "largest `LAG` of a processor, in events"},
			&cli.DurationFlag{Name: flagMaxAge, DefaultText: "any", Usage: "largest age of an event that is not acked, as a `DURATION`"},
			&cli.Int64Flag{Name: flagMaxDead, DefaultText: "any", Usage: "largest `NUMBER` of dead letters of a processor"},
		},
		Action: p.action(runCheck),
	},
		"PROG check --max-lag 10000 --max-age 5m",
		"PROG check orders/printer --max-dead 0 --output json")
}

// A finding is something that a check complains about.
type finding struct {
	Stream    string `json:"stream"`
	Processor string `json:"processor"`
	Partition *int   `json:"partition,omitempty"` // nil: all together
	What      string `json:"what"`                // "lag", "age", "dead" or "quarantine"
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
	for _, name := range []string{flagMaxLag, flagMaxDead} {
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
	v := verdict{Findings: []finding{}, Processors: []checkedProc{}}
	for _, stream := range slices.Sorted(maps.Keys(state.Unreadable)) {
		return errors.New(state.Unreadable[stream])
	}
	for _, st := range state.Streams {
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
	v.OK = len(v.Findings) == 0
	if err := s.out.write(v, v.text); err != nil || v.OK {
		return err
	}
	return exitThreshold
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
	if limit := c.Int64(flagMaxLag); c.IsSet(flagMaxLag) && p.Totals.Lag > limit {
		add(nil, "lag", p.Totals.Lag, limit, "lag %s is above %d", atLeast(p.Totals.Lag, p.Totals.LagMore), limit)
	}
	if limit := c.Duration(flagMaxAge); c.IsSet(flagMaxAge) {
		for _, s := range p.Partitions {
			if age := time.Duration(s.Age) * time.Millisecond; age > limit {
				add(&s.Partition, "age", s.Age, limit.Milliseconds(), "event %s has not been acked for %s, above %s (%s)", rstream.EventID(s.Partition, s.Oldest), shortly(age), limit, stateOf(&s, time.Now()))
			}
		}
	}
	if limit := c.Int64(flagMaxDead); c.IsSet(flagMaxDead) && p.Totals.Dead > limit {
		add(nil, "dead", p.Totals.Dead, limit, "%d dead letters, above %d; see dead ls %s/%s", p.Totals.Dead, limit, p.Stream, p.Processor)
	}
	for _, s := range p.Partitions {
		if q := s.Quarantine; q != nil {
			add(&s.Partition, "quarantine", 1, 0, "quarantined since %s, at event %s: %s", q.At.Format(time.RFC3339), dash(q.Event), summary(q.Reason))
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
		word = fmt.Sprint(len(v.Findings), " findings")
	}
	fmt.Fprintf(w, "%s: %d processors, lag %s, oldest unacked event %s\n", word, len(v.Processors), atLeast(lag, more), ageOf(oldest, lag > 0))
	for _, f := range v.Findings {
		if _, err := fmt.Fprintln(w, f.Text); err != nil {
			return err
		}
	}
	return nil
}
