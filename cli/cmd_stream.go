package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/words"
)

func streamCommand(p *program) *cobra.Command {
	ls := p.command("ls", "list streams: partitions, length, delayed events, processors", flagList{internalFlag()}, connected(runStreamLs),
		"PROG stream ls",
		"PROG stream ls --output json")
	info := p.command("info STREAM", "show how a stream is declared, and how long each of its partitions is", nil, connected(runStreamInfo),
		"PROG stream info orders",
		"PROG stream info orders --output json")
	rm := p.command("rm STREAM", "delete a stream that no worker runs any more: its events, what is delayed, its processors and their dead letters",
		flagList{yesFlag()}, connected(runStreamRm),
		"PROG stream rm orders --yes")
	return p.group("stream", "look after streams", ls, info, tailCommand(p), verifyCommand(p), rm, moveLayoutCommand(p))
}

// A listedStream is what `stream ls` and `stream info` print.
type listedStream struct {
	Stream      string             `json:"stream"`
	Partitions  int                `json:"partitions"`
	Size        int64              `json:"size"` // the most entries that a partition may have
	Codec       string             `json:"codec"`
	Partitioner string             `json:"partitioner"`
	KeyField    string             `json:"key_field"`
	Layout      string             `json:"layout"`
	Kind        string             `json:"kind,omitempty"`
	Length      int64              `json:"length"` // entries of all partitions
	Delayed     int64              `json:"delayed"`
	Processors  []string           `json:"processors"`
	Logs        []inspect.LogState `json:"logs,omitempty"` // each partition, in order; not in lists

	Groups []inspect.GroupState `json:"groups,omitempty"` // consumer groups of no registered processor; not in lists
}

// listStream describes a stream, with its partitions if logs is set. It returns nil if there is no such stream.
func listStream(ctx context.Context, s *session, name string, logs bool) (*listedStream, error) {
	m, ok, err := s.client.LoadMeta(ctx, name)
	if err != nil || !ok {
		return nil, err
	}
	l := &listedStream{
		Stream: name, Partitions: m.Partitions, Size: m.MaxLen, Codec: m.Codec, Partitioner: m.Partitioner,
		KeyField: m.KeyField, Layout: m.Layout, Kind: m.Kind, Processors: append([]string{}, m.Processors...),
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

func runStreamLs(ctx context.Context, s *session, c *call) error {
	names, err := s.client.Streams(ctx)
	if err != nil {
		return err
	}
	list := []*listedStream{}
	for _, name := range names {
		l, err := listStream(ctx, s, name, false)
		switch {
		case err != nil:
			return err
		case l != nil && (c.Bool(flagAll) || !store.InternalKind(l.Kind)): // not deleted meanwhile
			list = append(list, l)
		}
	}
	return s.out.table(list, func(t table) {
		fmt.Fprintln(t, "STREAM\tKIND\tPARTITIONS\tSIZE\tLENGTH\tDELAYED\tCODEC\tPARTITIONER\tPROCESSORS")
		for _, l := range list {
			t.row(l.Stream, words.Dash(l.Kind), l.Partitions, l.Size, l.Length, l.Delayed, l.Codec, l.Partitioner, words.Dash(strings.Join(l.Processors, ", ")))
		}
	})
}

func runStreamInfo(ctx context.Context, s *session, _ *call) error {
	l, err := listStream(ctx, s, s.stream, true)
	if err != nil {
		return err
	}
	if l == nil {
		return s.noStream(ctx, s.stream)
	}
	return s.out.table(l, l.write)
}

func (l *listedStream) write(t table) {
	t.linef("stream %s: %d partitions, size %d, codec %s, partitioner %s, key field %s, keys %s", l.Stream, l.Partitions, l.Size, l.Codec, l.Partitioner, words.Dash(l.KeyField), l.Layout)
	if l.Kind != "" {
		t.linef("it is %s", store.CalledKind(l.Kind))
	}
	t.linef("processors: %s\n", words.Dash(strings.Join(l.Processors, ", ")))
	fmt.Fprintln(t, "PARTITION\tLENGTH\tFULL\tDELAYED\tFIRST\tEND\tSPAN\tKEY")
	for _, p := range l.Logs {
		if p.Err != "" {
			t.row(p.Partition, p.Err)
			continue
		}
		full, span := "-", "-"
		if l.Size > 0 {
			full = fmt.Sprintf("%d %%", 100*p.Length/l.Size)
		}
		if p.First != "" {
			span = words.Short(p.Span())
		}
		t.row(p.Partition, p.Length, full, p.Delayed, words.Dash(p.First), p.End, span, p.Key)
	}
	t.row("total", l.Length, "", l.Delayed)
	if len(l.Groups) == 0 {
		return
	}
	t.Flush() // the next table has other columns
	t.linef("\nconsumer groups of no registered processor, which hold back what they have not acked (`processor rm %s/GROUP` lets one go):", l.Stream)
	fmt.Fprintln(t, "GROUP\tWHO\tALIVE\tPARTITIONS\tPENDING\tLAG\tDELIVERED\tNEEDS")
	for _, g := range l.Groups {
		t.row(g.Group, g.Who, g.Alive, g.Partitions, g.Pending, known(g.Lag, "-"), fmt.Sprintf("%d/%s", g.Partition, g.Delivered), fmt.Sprintf("%d/%s", g.Partition, g.Needs))
	}
}

func runStreamRm(ctx context.Context, s *session, c *call) error {
	gone, err := s.admin.RemoveStream(ctx, s.stream, &admin.RemoveOptions{DryRun: true})
	if err != nil {
		return err
	}
	parts := func() []any {
		return []any{s.stream, words.Plural(gone.Entries, "entry"), words.Plural(gone.Delayed, "delayed event"), words.Plural(len(gone.Processors), "processor"), words.Plural(gone.Dead, "dead letter"), extentsText(gone.Extents)}
	}
	if err := s.confirm(c, "Delete stream %s for good, with %s, %s, %s and %s%s?", parts()...); err != nil {
		return err
	}
	if gone, err = s.admin.RemoveStream(ctx, s.stream, nil); err != nil {
		return rulesLeft(s, err)
	}
	s.far.done()
	return s.out.line(gone, "stream %s removed; %s, %s, %s, %s%s%s%s", append(parts(), alsoRules(gone.Rules), alsoOutputs(gone.Outputs))...)
}

// extentsText is what an extension has stored with a stream, "" for nothing.
func extentsText(extents []admin.Extent) string {
	var text strings.Builder
	for _, e := range extents {
		fmt.Fprintf(&text, ", %s: %d", e.What, e.Count)
	}
	return text.String()
}
