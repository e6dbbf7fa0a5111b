package operate

import (
	"context"
	"fmt"

	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
)

// A Destination is a stream that dead letters are replayed to.
type Destination struct {
	from, stream string
	partitions   int
	partition    func(key string, partitions int) int // nil: the one that they came from
}

// Back replays to the stream that the dead letters are of.
func Back(stream string) *Destination { return &Destination{from: stream, stream: stream} }

// Elsewhere replays to another stream of the app, whose entries must have the same
// form, and whose partitions are found as the app declared, or by the name of the
// partitioner in the metadata.
func Elsewhere(from string, was store.Meta, to string, meta store.Meta, declared []*appview.Stream) (*Destination, error) {
	if meta.Codec != was.Codec {
		return nil, fmt.Errorf("stream %s has the codec %q, stream %s has %q: it could not decode the records; nothing was changed", to, meta.Codec, from, was.Codec)
	}
	for _, st := range declared {
		if st.Name == to && st.Meta.Partitioner == meta.Partitioner {
			return &Destination{from, to, meta.Partitions, st.Partition}, nil
		}
	}
	p, err := Partitioner(to, meta)
	if err != nil {
		return nil, err
	}
	return &Destination{from, to, meta.Partitions, p.Func}, nil
}

// replay is what becomes of one dead letter. In another stream the key, which
// that stream's records may hold elsewhere, goes along.
func (d *Destination) replay(from store.Partition, letter inspect.DeadState) store.Replay {
	r := store.Replay{From: from, ID: letter.Letter, Stream: d.stream, Partition: letter.Partition}
	switch {
	case d.partition == nil:
	case letter.Key == "": // not known, of a record that cannot be decoded
		r.Partition %= d.partitions
	default:
		r.Partition = d.partition(letter.WholeKey, d.partitions)
		r.Fields = []string{store.KeyField, letter.WholeKey}
	}
	return r
}

// Replayed is a dead letter that became an event again.
type Replayed struct {
	inspect.DeadState
	ToStream    string `json:"to_stream"`
	ToPartition int    `json:"to_partition"`
	ToEvent     string `json:"to_event"` // partition/entry ID, "" if it is not known
}

// Replay appends the events of dead letters of a processor again, in this order, and
// removes the dead letters. It leaves out what somebody else has replayed or dropped
// meanwhile. At an error it returns those that were replayed before; the others are as
// they were. A dry one tells where they would go, and changes nothing.
func Replay(ctx context.Context, c *store.Client, processor string, letters []inspect.DeadState, to *Destination, dry bool) ([]Replayed, error) {
	done := []Replayed{}
	for _, letter := range letters {
		r := to.replay(c.Partition(to.from, processor, letter.Partition), letter)
		one := Replayed{letter, r.Stream, r.Partition, ""}
		if !dry {
			id, ok, err := c.Replay(ctx, r)
			if err != nil {
				return done, err
			}
			if !ok {
				continue
			}
			one.ToEvent = entryid.EventID(r.Partition, id)
		}
		done = append(done, one)
	}
	return done, nil
}
