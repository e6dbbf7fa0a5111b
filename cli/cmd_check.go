package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/words"
)

const (
	flagMaxLag  = "max-lag"
	flagMaxAge  = "max-age"
	flagMaxDead = "max-dead"
	flagMaxLost = "max-lost"

	// exitThreshold is the exit code of a check that found something.
	exitThreshold exitCode = 3
)

func checkCommand(p *program) *cobra.Command {
	return p.command("check [STREAM[/PROCESSOR]]", "for monitoring: exit with 3 if nothing processes, processors are too far behind, events were lost or forgotten, Redis evicts, or partitions are quarantined or held", flagList{
		newFlag(flagMaxLag, int64(0), "largest `LAG` of a processor, in events (default any)"),
		newFlag(flagMaxAge, time.Duration(0), "largest age of an event that is not acked, as a `DURATION` (default any)"),
		newFlag(flagMaxDead, int64(0), "largest `NUMBER` of dead letters of a processor (default any)"),
		newFlag(flagMaxLost, int64(0), "largest `NUMBER` of events of a processor that were removed before they were processed"),
	}, runCheck,
		"PROG check --max-lag 10000 --max-age 5m",
		"PROG check orders/printer --max-dead 0 --output json")
}

// A verdict is the outcome of a check.
type verdict struct {
	OK         bool              `json:"ok"`
	Findings   []inspect.Finding `json:"findings"`
	Processors []checkedProc     `json:"processors"`
}

type checkedProc struct {
	Stream    string         `json:"stream"`
	Processor string         `json:"processor"`
	Totals    inspect.Totals `json:"totals"`
}

func runCheck(ctx context.Context, s *session, c *call) error {
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
	state, err := s.look(ctx, max(c.Int64(flagMaxLag)+1, inspect.CountAtMost))
	if err != nil {
		return err
	}
	if len(state.Streams) == 0 {
		return fmt.Errorf("app %s has no streams at redis %s: is that its name, and its Redis? A stream is there once its app has sent to it or run a worker", state.App, state.Redis)
	}
	v := verdict{Processors: []checkedProc{}}
	if v.Findings, err = inspect.Check(ctx, s.client, state, limitsOf(c)); err != nil {
		return err
	}
	more, err := extension.Findings(ctx, s.app, s.client, limitsOf(c))
	if err != nil {
		return err
	}
	for _, f := range more {
		if s.stream == "" || f.Stream == s.stream && (s.processor == "" || f.Processor == s.processor) {
			v.Findings = append(v.Findings, f)
		}
	}
	for _, p := range state.Processors() {
		v.Processors = append(v.Processors, checkedProc{p.Stream, p.Processor, p.Totals})
	}
	v.OK = len(v.Findings) == 0
	if err := s.out.write(v, v.text); err != nil || v.OK {
		return err
	}
	return exitThreshold
}

// limitsOf reads the limits from the flags.
func limitsOf(c *call) inspect.Limits {
	return inspect.Limits{
		Lag:  ifSet(c, flagMaxLag, c.Int64(flagMaxLag)),
		Age:  ifSet(c, flagMaxAge, c.Duration(flagMaxAge)),
		Dead: ifSet(c, flagMaxDead, c.Int64(flagMaxDead)),
		Lost: c.Int64(flagMaxLost),
	}
}

func (v verdict) text(w io.Writer) error {
	var lag, oldest int64
	more := false
	for _, p := range v.Processors {
		lag, more, oldest = lag+p.Totals.Lag, more || p.Totals.LagMore, max(oldest, p.Totals.Age)
	}
	word := "OK"
	if !v.OK {
		word = words.Plural(len(v.Findings), "finding")
	}
	printf(w, "%s: %s, lag %s, oldest unacked event %s\n", word, words.Plural(len(v.Processors), "processor"), words.AtLeast(lag, more), ageOf(oldest, lag > 0))
	for _, f := range v.Findings {
		if _, err := printf(w, "%s\n", f.Text); err != nil {
			return err
		}
	}
	return nil
}
