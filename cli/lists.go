package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/words"
	"github.com/runnel-go/runnel/rebalance"
)

func workersCommand(p *program) *cli.Command {
	ls := p.command(&cli.Command{
		Name:      "ls",
		Usage:     "list the workers of processors: whether they live, and which partitions they are assigned and own",
		ArgsUsage: "[STREAM[/PROCESSOR]]",
		Action:    p.action(runMembers),
	},
		"PROG workers ls",
		"PROG workers ls orders/printer --output json")
	return p.group("workers", "see and steer workers", ls, drainCommand(p), undrainCommand(p))
}

// A listedMember is what `workers ls` tells.
type listedMember struct {
	Stream    string `json:"stream"`
	Processor string `json:"processor"`
	inspect.MemberState
	Owned []int `json:"owned"` // partitions whose lock it holds
}

func runMembers(ctx context.Context, s *session, c *cli.Context) error {
	state, err := s.lookAt(ctx, c)
	if err != nil {
		return err
	}
	list, gone := []listedMember{}, []string{}
	for _, st := range state.Streams {
		for _, p := range st.Processors {
			if p.MembersErr != "" {
				return errors.New(p.MembersErr)
			}
			list = append(list, membersOf(p)...)
			for _, l := range steering(&p) {
				if l.gone != "" {
					gone = append(gone, fmt.Sprintf("%s/%s: %s", p.Stream, p.Processor, l))
				}
			}
		}
	}
	return s.out.write(list, func(w io.Writer) error { return writeMembers(w, list, gone, time.Now()) })
}

func membersOf(p inspect.ProcessorState) (out []listedMember) {
	for _, m := range p.Members {
		one := listedMember{Stream: p.Stream, Processor: p.Processor, MemberState: m, Owned: []int{}}
		for _, s := range p.Partitions {
			if s.Executor == m.Executor {
				one.Owned = append(one.Owned, s.Partition)
			}
		}
		out = append(out, one)
	}
	return out
}

// writeMembers also tells which drains and pins are of workers that are gone.
func writeMembers(w io.Writer, list []listedMember, gone []string, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PROCESSOR\tWORKER\tEXECUTOR\tJOINED\tHEARTBEAT\tASSIGNED\tOWNED\tPINNED\tDRAINED")
	for _, m := range list {
		pinned := "-"
		if len(m.Pinned) > 0 {
			pinned = rebalance.Ranges(m.Pinned)
		}
		printf(t, "%s/%s\t%s\t%s\t%s ago\t%s\t%s\t%s\t%s\t%s\n", m.Stream, m.Processor, m.Worker, m.Executor, words.Short(now.Sub(m.JoinedAt)), beatOf(m.MemberState),
			rebalance.Ranges(m.Assigned), rebalance.Ranges(m.Owned), pinned, words.Ago(now, m.Drained))
	}
	for _, l := range gone {
		printf(t, "%s\n", l)
	}
	return t.Flush()
}

// beatOf reports whether a member lives.
func beatOf(m inspect.MemberState) string {
	if !m.Alive {
		return "dead"
	}
	return "expires in " + words.Short(time.Duration(m.HeartbeatLeft)*time.Millisecond)
}

// lookAt returns the state of what the argument [STREAM[/PROCESSOR]] names.
func (s *session) lookAt(ctx context.Context, c *cli.Context) (*inspect.AppState, error) {
	if err := onlyTarget(c); err != nil {
		return nil, err
	}
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	return s.look(ctx, c.Args().First(), 0)
}

// streamCommands look after streams.
func streamCommands(p *program) *cli.Command {
	ls := p.command(&cli.Command{
		Name:      "ls",
		Usage:     "list streams: partitions, length, delayed events, processors",
		ArgsUsage: " ",
		Action:    p.action(runStreamLs),
	},
		"PROG stream ls",
		"PROG stream ls --output json")
	info := p.command(&cli.Command{
		Name:      "info",
		Usage:     "show how a stream is declared, and how long each of its partitions is",
		ArgsUsage: "STREAM",
		Action:    p.action(runStreamInfo),
	},
		"PROG stream info orders",
		"PROG stream info orders --output json")
	return p.group("stream", "look after streams", ls, info, tailCommand(p), verifyCommand(p), removeStreamCommand(p), moveLayoutCommand(p))
}

// A listedStream is what `stream ls` and `stream info` tell.
type listedStream struct {
	Stream      string             `json:"stream"`
	Partitions  int                `json:"partitions"`
	Size        int64              `json:"size"` // the most entries that a partition may have
	Codec       string             `json:"codec"`
	Partitioner string             `json:"partitioner"`
	KeyField    string             `json:"key_field"`
	Layout      string             `json:"layout"`
	Length      int64              `json:"length"` // entries of all partitions
	Delayed     int64              `json:"delayed"`
	Processors  []string           `json:"processors"`
	Logs        []inspect.LogState `json:"logs,omitempty"` // each partition, in order; not in lists

	Groups []inspect.GroupState `json:"groups,omitempty"` // consumer groups of no registered processor; not in lists
}

func (s *session) listStream(ctx context.Context, name string, logs bool) (*listedStream, error) {
	m, ok, err := s.client.LoadMeta(ctx, name)
	if err != nil || !ok {
		return nil, err
	}
	l := &listedStream{
		Stream: name, Partitions: m.Partitions, Size: m.MaxLen, Codec: m.Codec, Partitioner: m.Partitioner,
		KeyField: m.KeyField, Layout: m.Layout, Processors: append([]string{}, m.Processors...),
	}
	all, err := inspect.Logs(ctx, s.client, name, m.Partitions)
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		l.Length += one.Length
		l.Delayed += one.Delayed
	}
	if logs {
		l.Logs = all
		l.Groups, err = inspect.Groups(ctx, s.client, name, m)
	}
	return l, err
}

func runStreamLs(ctx context.Context, s *session, c *cli.Context) error {
	if c.Args().Present() {
		return usagef(c, "unexpected argument %q", c.Args().First())
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	names, err := s.client.Streams(ctx)
	if err != nil {
		return err
	}
	list := []*listedStream{}
	for _, name := range names {
		l, err := s.listStream(ctx, name, false)
		switch {
		case err != nil:
			return err
		case l != nil: // not deleted meanwhile
			list = append(list, l)
		}
	}
	return s.out.write(list, func(w io.Writer) error {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "STREAM\tPARTITIONS\tSIZE\tLENGTH\tDELAYED\tCODEC\tPARTITIONER\tPROCESSORS")
		for _, l := range list {
			printf(t, "%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n", l.Stream, l.Partitions, l.Size, l.Length, l.Delayed, l.Codec, l.Partitioner, words.Dash(strings.Join(l.Processors, ", ")))
		}
		return t.Flush()
	})
}

func runStreamInfo(ctx context.Context, s *session, c *cli.Context) error {
	name := c.Args().First()
	switch {
	case name == "":
		return usagef(c, "which stream?")
	case c.NArg() > 1:
		return usagef(c, "unexpected argument %q", c.Args().Get(1))
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	l, err := s.listStream(ctx, name, true)
	if err != nil {
		return err
	}
	if l == nil {
		return s.noStream(ctx, name)
	}
	return s.out.write(l, func(w io.Writer) error { return l.write(w, time.Now()) })
}

func (l *listedStream) write(w io.Writer, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	printf(t, "stream %s: %d partitions, size %d, codec %s, partitioner %s, key field %s, keys %s\n", l.Stream, l.Partitions, l.Size, l.Codec, l.Partitioner, words.Dash(l.KeyField), l.Layout)
	printf(t, "processors: %s\n\nPARTITION\tLENGTH\tFULL\tDELAYED\tFIRST\tEND\tSPAN\tKEY\n", words.Dash(strings.Join(l.Processors, ", ")))
	for _, p := range l.Logs {
		if p.Err != "" {
			printf(t, "%d\t%s\n", p.Partition, p.Err)
			continue
		}
		full, span := "-", "-"
		if l.Size > 0 {
			full = fmt.Sprintf("%d %%", 100*p.Length/l.Size)
		}
		if p.First != "" {
			span = words.Short(p.Span())
		}
		printf(t, "%d\t%d\t%s\t%d\t%s\t%s\t%s\t%s\n", p.Partition, p.Length, full, p.Delayed, words.Dash(p.First), p.End, span, p.Key)
	}
	printf(t, "total\t%d\t\t%d\n", l.Length, l.Delayed)
	if err := t.Flush(); err != nil || len(l.Groups) == 0 {
		return err
	}
	printf(t, "\nconsumer groups of no registered processor, which hold back what they have not acked (`processor rm %s/GROUP` lets one go):\n", l.Stream)
	fmt.Fprintln(t, "GROUP\tWHO\tALIVE\tPARTITIONS\tPENDING\tLAG\tDELIVERED\tNEEDS")
	for _, g := range l.Groups {
		lag := "-"
		if g.Lag >= 0 {
			lag = fmt.Sprint(g.Lag)
		}
		printf(t, "%s\t%s\t%t\t%d\t%d\t%s\t%d/%s\t%d/%s\n", g.Group, g.Who, g.Alive, g.Partitions, g.Pending, lag, g.Partition, g.Delivered, g.Partition, g.Needs)
	}
	return t.Flush()
}

func processorLsCommand(p *program) *cli.Command {
	return p.command(&cli.Command{
		Name:      "ls",
		Usage:     "list processors: members, owned partitions, lag, what is parked, dead or quarantined",
		ArgsUsage: "[STREAM]",
		Action:    p.action(runProcessorLs),
	},
		"PROG processor ls",
		"PROG processor ls orders --output json")
}

func processorInfoCommand(p *program) *cli.Command {
	return p.command(&cli.Command{
		Name:      "info",
		Usage:     "show a processor with its members and all that is known of its partitions",
		ArgsUsage: "STREAM/PROCESSOR",
		Action:    p.action(runProcessorInfo),
	},
		"PROG processor info orders/printer",
		"PROG processor info orders/printer --output json")
}

func runProcessorInfo(ctx context.Context, s *session, c *cli.Context) error {
	if _, _, err := processorArgument(c); err != nil {
		return err
	}
	state, err := s.lookAt(ctx, c)
	if err != nil {
		return err
	}
	p := &state.Streams[0].Processors[0]
	return s.out.write(p, func(w io.Writer) error {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, r := range state.Rules {
			fmt.Fprintln(t, shown(ruleText(r)))
		}
		writeProcessor(t, p, true, time.Now())
		return t.Flush()
	})
}

// A listedProcessor is what `processor ls` tells.
type listedProcessor struct {
	Stream     string         `json:"stream"`
	Processor  string         `json:"processor"`
	Generation int64          `json:"generation"`
	Members    int            `json:"members"`
	Partitions int            `json:"partitions"`
	Held       int            `json:"held"` // partitions that are paused or blocked
	Totals     inspect.Totals `json:"totals"`
}

func runProcessorLs(ctx context.Context, s *session, c *cli.Context) error {
	if strings.Contains(c.Args().First(), "/") {
		return usagef(c, "%q is no stream", c.Args().First())
	}
	state, err := s.lookAt(ctx, c)
	if err != nil {
		return err
	}
	list := []listedProcessor{}
	for _, st := range state.Streams {
		for _, p := range st.Processors {
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
	}
	return s.out.write(list, func(w io.Writer) error {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "PROCESSOR\tMEMBERS\tOWNED\tPENDING\tLAG\tAGE\tDELAYED\tPARKED\tDEAD\tLOST\tHELD\tQUARANTINED")
		for _, p := range list {
			printf(t, "%s/%s\t%d\t%d of %d\t%d\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\n", p.Stream, p.Processor, p.Members, p.Totals.Owned, p.Partitions, p.Totals.Pending,
				words.AtLeast(p.Totals.Lag, p.Totals.LagMore), ageOf(p.Totals.Age, p.Totals.Lag > 0), p.Totals.Delayed, p.Totals.Parked, p.Totals.Dead, p.Totals.Lost, p.Held, p.Totals.Quarantined)
		}
		return t.Flush()
	})
}
