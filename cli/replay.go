package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/rstream"
)

func (p *program) deadReplay() *cli.Command {
	return p.command(&cli.Command{
		Name:      "replay",
		Usage:     "append the events of dead letters again, the oldest first, and remove the dead letters",
		ArgsUsage: "STREAM/PROCESSOR",
		Flags: deadFlags(dryRunFlag(),
			&cli.StringFlag{Name: "to", DefaultText: "the same", Usage: "append to this `STREAM` instead"}),
		Action: p.action(runDeadReplay),
	},
		"PROG dead replay orders/printer --dry-run",
		"PROG dead replay orders/printer --key ada",
		"PROG dead replay orders/printer --since 1h --to orders-again")
}

// replayed is what `dead replay` tells of a dead letter.
type replayed struct {
	inspect.DeadState
	ToStream    string `json:"to_stream"`
	ToPartition int    `json:"to_partition"`
	ToEvent     string `json:"to_event"` // the new entry ID, "" if it is not known
}

// replayedLetters is what `dead replay` tells.
type replayedLetters struct {
	Stream    string     `json:"stream"`
	Processor string     `json:"processor"`
	DryRun    bool       `json:"dry_run"`
	Replayed  []replayed `json:"replayed"`
}

func runDeadReplay(ctx context.Context, s *session, c *cli.Context) error {
	a, err := s.aside(ctx, c)
	if err != nil {
		return err
	}
	where, err := s.destination(ctx, a, c.String("to"))
	if err != nil {
		return err
	}
	letters, err := inspect.Dead(ctx, s.client, a.stream, a.processor, a.filter, false)
	if err != nil {
		return err
	}
	out := replayedLetters{a.stream, a.processor, c.Bool(flagDryRun), []replayed{}}
	for _, d := range letters {
		r := where.replay(a.place(s, d.Partition), d)
		one := replayed{d, r.Stream, r.Partition, ""}
		if !out.DryRun {
			var ok bool
			if one.ToEvent, ok, err = s.client.Replay(ctx, r); err != nil {
				err = fmt.Errorf("%w; the dead letters behind it are as they were: repeat the command", err)
				break
			}
			if !ok {
				continue // somebody else has replayed or dropped it meanwhile
			}
		}
		out.Replayed = append(out.Replayed, one)
	}
	return errors.Join(err, s.out.write(out, func(w io.Writer) error { return out.write(w, time.Now()) }))
}

func (l *replayedLetters) write(w io.Writer, now time.Time) error {
	did := "replayed"
	if l.DryRun {
		did = "would be replayed"
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(l.Replayed) > 0 {
		fmt.Fprintln(t, "ID\tEVENT\tKEY\tDIED\tREASON\t\tTO")
	}
	for _, r := range l.Replayed {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t→\t%s %d %s\n", eventID(r.Partition, r.ID), dash(r.Event), dash(r.Key),
			ago(now, &r.Died), dash(r.Reason), r.ToStream, r.ToPartition, r.ToEvent)
	}
	fmt.Fprintf(t, "%s %s\n", plural(len(l.Replayed), "dead letter"), did)
	return t.Flush()
}

// A destination is a stream that dead letters are replayed to.
type destination struct {
	stream     string
	partitions int
	partition  func(key string, partitions int) int // nil: the one that they came from
}

// destination finds the stream that replays go to: the dead letters' own, or
// another one of the app whose entries have the same form.
func (s *session) destination(ctx context.Context, a *aside, to string) (*destination, error) {
	if to == "" || to == a.stream {
		return &destination{stream: a.stream}, nil
	}
	meta, err := s.metadata(ctx, to)
	if err != nil {
		return nil, err
	}
	if meta.Codec != a.meta.Codec {
		return nil, fmt.Errorf("stream %s has the codec %q, stream %s has %q: it could not decode the records; nothing was changed", to, meta.Codec, a.stream, a.meta.Codec)
	}
	partition, err := s.partitioner(to, meta)
	if err != nil {
		return nil, fmt.Errorf("%w; replay with the app's own binary", err)
	}
	return &destination{stream: to, partitions: meta.Partitions, partition: partition}, nil
}

// partitioner returns how a stream finds the partition of a key: by what the app
// says, or by the name in the metadata.
func (s *session) partitioner(stream string, meta rstream.Meta) (func(key string, partitions int) int, error) {
	if s.program.app != nil {
		streams, err := s.reg.Streams()
		if err != nil {
			return nil, err
		}
		for _, st := range streams {
			if st.Name == stream && st.Meta.Partitioner == meta.Partitioner {
				return st.Partition, nil
			}
		}
	}
	p, err := partitionerOf(stream, meta)
	if err != nil {
		return nil, err
	}
	return p.Func, nil
}

// replay is what becomes of one dead letter. In another stream the key, which
// that stream's records may hold elsewhere, goes along.
func (d *destination) replay(from rstream.Place, letter inspect.DeadState) rstream.Replay {
	r := rstream.Replay{From: from, ID: letter.ID, Stream: d.stream, Partition: letter.Partition}
	switch {
	case d.partition == nil:
	case letter.Key == "": // not known, of a record that cannot be decoded
		r.Partition %= d.partitions
	default:
		r.Partition = d.partition(letter.Key, d.partitions)
		r.Fields = []string{rstream.KeyField, letter.Key}
	}
	return r
}
