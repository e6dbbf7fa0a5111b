package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/internal/inspect"
)

func (p *program) status() *cli.Command {
	return p.command(&cli.Command{
		Name:      "status",
		Usage:     "show members, owners, epochs, pending events and lag",
		ArgsUsage: "[STREAM[/PROCESSOR]]",
		Action:    p.action(runStatus),
	},
		"PROG status",
		"PROG status orders/printer",
		"PROG status --output json")
}

func runStatus(ctx context.Context, s *session, c *cli.Context) error {
	if c.NArg() > 1 {
		return usagef(c, "unexpected argument %q", c.Args().Get(1))
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	stream, processor, _ := strings.Cut(c.Args().First(), "/")
	state, err := inspect.App(ctx, s.client, stream)
	if err != nil {
		return err
	}
	if stream != "" && len(state.Streams) == 0 {
		return s.noStream(ctx, stream)
	}
	if processor != "" {
		only := &state.Streams[0]
		i := slices.IndexFunc(only.Processors, func(p inspect.ProcessorState) bool { return p.Processor == processor })
		if i < 0 {
			return noProcessor(only, processor)
		}
		only.Processors = only.Processors[i : i+1]
	}
	return s.out.write(state, func(w io.Writer) error { return writeStatus(w, state, time.Now()) })
}

func noProcessor(s *inspect.StreamState, processor string) error {
	var there []string
	for _, p := range s.Processors {
		there = append(there, p.Processor)
	}
	return unknownProcessor(s.Stream, processor, there)
}

func writeStatus(w io.Writer, a *inspect.AppState, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "app %s, redis %s, leader %s\n", a.App, a.Redis, dash(a.Leader))
	if len(a.Streams) == 0 {
		fmt.Fprintln(t, "no streams: a stream is there once its app has sent to it or run a worker")
	}
	for _, r := range a.Rules {
		fmt.Fprintln(t, ruleText(r))
	}
	if a.RulesErr != "" {
		fmt.Fprintf(t, "what is paused or blocked cannot be told, workers follow what they knew: %s\n", summary(a.RulesErr))
	}
	for _, s := range a.Streams {
		fmt.Fprintf(t, "\nstream %s: %d partitions, size %d, codec %s, partitioner %s, %d delayed\n", s.Stream, s.Partitions, s.Size, s.Codec, s.Partitioner, s.Delayed)
		if len(s.Processors) == 0 {
			fmt.Fprintln(t, "no processors")
		}
		for i := range s.Processors {
			writeProcessor(t, &s.Processors[i], now)
		}
	}
	return t.Flush()
}

func writeProcessor(t io.Writer, p *inspect.ProcessorState, now time.Time) {
	fmt.Fprintf(t, "\nprocessor %s/%s: generation %d, %d members\n", p.Stream, p.Processor, p.Generation, len(p.Members))
	if len(p.Members) > 0 {
		fmt.Fprintln(t, "WORKER\tEXECUTOR\tASSIGNED\tJOINED\tHEARTBEAT")
	}
	for _, m := range p.Members {
		beat := "dead"
		if m.Alive {
			beat = "expires in " + shortly(time.Duration(m.HeartbeatLeft)*time.Millisecond)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s ago\t%s\n", m.Worker, m.Executor, len(m.Assigned), shortly(now.Sub(m.JoinedAt)), beat)
	}
	fmt.Fprintln(t, "\nPARTITION\tOWNER\tEPOCH\tLENGTH\tPENDING\tLAG\tPARKED\tDEAD\tLOST\tACKED TO\tEND")
	for _, s := range p.Partitions {
		if s.Err != "" {
			fmt.Fprintf(t, "%d\t%s\n", s.Partition, s.Err)
			continue
		}
		owner := s.Worker
		if owner == "" {
			owner = s.Executor // a reset, or a worker that is no member any more
		}
		fmt.Fprintf(t, "%d\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\n", s.Partition, dash(owner), s.Epoch, s.Length, s.Pending, s.Lag, s.Parked, s.Dead, s.Lost, s.Floor, s.End)
	}
	fmt.Fprintf(t, "total\t%d owned\t\t%d\t%d\t%d\t%d\t%d\t%d\t\t\n", p.Totals.Owned, p.Totals.Length, p.Totals.Pending, p.Totals.Lag, p.Totals.Parked, p.Totals.Dead, p.Totals.Lost)
	writeHeld(t, p)
	for _, s := range p.Partitions {
		if s.RunningSince != nil {
			fmt.Fprintf(t, "partition %d: its function has been running since %s, for %s\n", s.Partition, s.RunningSince.Format(time.RFC3339), shortly(now.Sub(*s.RunningSince)))
		}
		if q := s.Quarantine; q != nil {
			fmt.Fprintf(t, "partition %d is quarantined since %s by worker %s, at event %s: %s\n", s.Partition, q.At.Format(time.RFC3339), dash(q.Worker), dash(q.Event), summary(q.Reason))
		}
	}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// shortly is a duration to the second, or below one to the millisecond.
func shortly(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
