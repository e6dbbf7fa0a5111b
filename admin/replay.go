package admin

import (
	"context"
	"fmt"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/records"
	"github.com/runnel-go/runnel/internal/store"
)

// ReplayOptions configure a replay. nil is all defaults.
type ReplayOptions struct {
	To     string // another stream of the app with entries of the same form; default: the dead letters' own
	DryRun bool   // return where the events would go, and change nothing
}

// A Replayed is a dead letter that became an event again.
type Replayed struct {
	DeadLetter
	ToStream    string `json:"to_stream"`
	ToPartition int    `json:"to_partition"`
	ToEvent     string `json:"to_event"` // partition/entry ID, "" if it is not known
}

// Replay appends the events of dead letters again, in this order, for every processor of the
// stream, and removes the dead letters. Letters that were replayed, retried or dropped meanwhile
// are skipped. With an error Replay returns those replayed before; the others are unchanged, and
// the call may be repeated.
func (d *DeadLetters) Replay(ctx context.Context, letters []DeadLetter, opts *ReplayOptions) ([]Replayed, error) {
	if opts == nil {
		opts = &ReplayOptions{}
	}
	client, m, err := d.c.meta(ctx, d.stream)
	if err != nil {
		return nil, err
	}
	to := &destination{stream: d.stream}
	if opts.To != "" && opts.To != d.stream {
		to, err = d.elsewhere(ctx, m, opts.To)
	} else if err = m.CheckSend(d.stream); err != nil {
		err = fmt.Errorf("%w; dead retry gives the events back to their processor alone", err)
	}
	if err != nil {
		return nil, err
	}
	done := []Replayed{}
	for _, letter := range letters {
		r := to.replay(client.Partition(d.stream, d.processor, letter.Partition), letter)
		one := Replayed{letter, r.Stream, r.Partition, ""}
		if !opts.DryRun {
			id, ok, err := client.Replay(ctx, r)
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

type destination struct {
	stream     string
	partitions int
	partition  func(key string, partitions int) int // nil: the one that they came from
}

// elsewhere returns another stream of the app, with entries of the same form, as the destination.
// Its partitioner is the declared one, or else the one that the metadata names.
func (d *DeadLetters) elsewhere(ctx context.Context, from store.Meta, to string) (*destination, error) {
	_, m, err := d.c.meta(ctx, to)
	if err == nil {
		err = m.CheckSend(to)
	}
	if err != nil {
		return nil, err
	}
	if m.Codec != from.Codec {
		return nil, fmt.Errorf("stream %s has the codec %q, stream %s has %q: it could not decode the records; nothing was changed", to, m.Codec, d.stream, from.Codec)
	}
	declared, err := d.c.app.Streams()
	if err != nil {
		return nil, err
	}
	for _, st := range declared {
		if st.Name == to && st.Meta.Partitioner == m.Partitioner {
			return &destination{to, m.Partitions, st.Partition}, nil
		}
	}
	p, err := records.Partitioner(to, m)
	if err != nil {
		return nil, fmt.Errorf("%w; replay with the app's own binary", err)
	}
	return &destination{to, m.Partitions, p.Func}, nil
}

// replay returns the replay of one dead letter. For another stream the key is explicit, as that
// stream's records may hold it elsewhere.
func (d *destination) replay(from store.Partition, letter DeadLetter) store.Replay {
	r := store.Replay{From: from, ID: letter.letter, Stream: d.stream, Partition: letter.Partition}
	switch {
	case d.partition == nil:
	case letter.Key == "": // not known: the record cannot be decoded
		r.Partition %= d.partitions
	default:
		r.Partition = d.partition(letter.KeyBytes, d.partitions)
		r.Fields = []string{store.KeyField, letter.KeyBytes}
	}
	return r
}
