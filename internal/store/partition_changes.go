package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/runnel-go/runnel/internal/redisconn"
)

// Changes are what an owner by position has done inside of Redis, to be stored together with its position.
type Changes struct {
	Tables  []TableChanges // of each table of the processor
	Outputs []Output       // in order
	Settled []string       // parked events that are done, by ID
	Now     int64          // the time that the partition has come to, in ms since 1970; 0: unknown
}

// TableChanges are the rows of one table that have changed, by key.
type TableChanges struct {
	Table Table
	Rows  map[string]Row
	Ended int64 // rows go that end by then, in ms since 1970; 0: none does
}

// An Output is a record for any partition. One in another slot gets it by way of the outbox.
type Output struct {
	Stream    string
	Partition int
	Fields    []string      // field, value, field, value, …
	Sent      *atomic.Int64 // counts it once it is stored
	Together  int           // so many changes at most may be in a commit of several iterations, 0 for any number
}

// Stored counts the outputs.
func (c *Changes) Stored() {
	for _, o := range c.Outputs {
		if o.Sent != nil {
			o.Sent.Add(1)
		}
	}
}

// grows reports whether the changes may need memory.
func (c *Changes) grows() bool {
	for _, t := range c.Tables {
		for _, r := range t.Rows {
			if r.There {
				return true
			}
		}
	}
	return len(c.Outputs) > 0
}

// target is a partition that is appended to.
type target struct {
	stream    string
	partition int
}

// changesCall returns the call for a commit with changes, and the partitions that it appends to.
func (c Owner) changesCall(ctx context.Context, one Commit, args []any) (call *redisconn.Call, to []target, err error) {
	p, ch := one.Partition, one.Changes
	names := []string{p.Log, p.Own}
	outputs, size := map[target][]int{}, 5+len(ch.Settled)+5*len(ch.Tables)
	var boxed []any
	for i, o := range ch.Outputs {
		t := target{o.Stream, o.Partition}
		if !c.Reaches(p.Number, o.Partition) {
			boxed = box(StreamPartition{Stream: o.Stream, Partition: o.Partition}, boxed, o.Fields)
			continue
		}
		if outputs[t] == nil {
			to = append(to, t)
		}
		outputs[t], size = append(outputs[t], i), size+1+len(o.Fields)
	}
	if one.Boxes > 0 {
		names = append(names, p.Outbox)
	}
	if len(ch.Settled) > 0 {
		names = append(names, p.Retry, p.Parked)
	}
	for _, t := range ch.Tables {
		size += 4 * len(t.Rows)
	}
	args = append(slices.Grow(args, size+2*len(to)), ch.grows(), len(ch.Settled), len(ch.Tables), len(to), one.Boxes, one.Epoch, one.Boxed, ch.Now)
	args = append(args, boxed...)
	args = appendTexts(args, ch.Settled)
	for _, t := range ch.Tables {
		names = append(names, t.Table.Rows, t.Table.Until)
		args = t.arguments(args)
	}
	for _, t := range to {
		most, err := MetaStore(c).mostOf(ctx, p.Stream, StreamPartition{Stream: t.stream, Partition: t.partition})
		if err != nil {
			return nil, nil, fmt.Errorf("outputs to partition %d of stream %s: %w", t.partition, t.stream, err)
		}
		if n := int64(len(outputs[t])); most > 0 && n > most {
			most = n // more than the stream takes at all: into an empty one
		}
		names, args = append(names, c.keys.Partition(t.stream, t.partition)), append(args, most, len(outputs[t]))
		for _, i := range outputs[t] {
			fields := ch.Outputs[i].Fields
			args = append(args, len(fields))
			for f := range fields {
				args = append(args, &fields[f]) // a pointer: a string would be copied to the heap
			}
		}
	}
	return redisconn.ScriptCall(ctx, changesScript, names, args...), to, nil
}

// arguments appends the changes of a table in the form of commit_changes.lua.
func (t TableChanges) arguments(args []any) []any {
	var sets, dels, times, lasting []any
	for key, r := range t.Rows {
		switch {
		case !r.There:
			dels = append(dels, key)
		default:
			sets = append(sets, key, r.Value)
		}
		switch {
		case r.There && r.Until > 0:
			times = append(times, r.Until, key)
		default:
			lasting = append(lasting, key)
		}
	}
	args = append(args, len(sets)/2, len(dels), len(times)/2, len(lasting), t.Ended)
	for _, part := range [][]any{sets, dels, times, lasting} {
		args = append(args, part...)
	}
	return args
}

// changesReply is the error that the reply to a commit stands for.
func changesReply(said string, to []target, one Commit) error {
	which, full := strings.CutPrefix(said, "FULL ")
	if !full {
		return nil
	}
	i, err := strconv.Atoi(which)
	if err != nil || i < 1 || i > len(to) {
		return fmt.Errorf("unexpected reply %q", said)
	}
	n := 0
	for _, o := range one.Changes.Outputs {
		if o.Stream == to[i-1].stream && o.Partition == to[i-1].partition {
			n++
		}
	}
	return &TargetFullError{Stream: to[i-1].stream, Partition: to[i-1].partition, Wanted: n}
}

// A TargetFullError reports that a commit was not done, since a partition has no room for what it appends there.
type TargetFullError struct {
	Stream    string
	Partition int
	Wanted    int // records
}

// Error names the partition.
func (e *TargetFullError) Error() string {
	return fmt.Sprintf("partition %d of stream %s has no room for %d more", e.Partition, e.Stream, e.Wanted)
}

// Unwrap returns ErrFull.
func (e *TargetFullError) Unwrap() error { return ErrFull }

// AwaitRoom blocks until the partition has room, by its stream's overflow policy, or until ctx ends. A policy that
// would refuse waits here, too: what is to be appended was emitted already.
func (c Producer) AwaitRoom(ctx context.Context, e *TargetFullError, tell func(error)) {
	p := &part{Append: &Append{Stream: e.Stream, Partition: e.Partition}, log: c.keys.Partition(e.Stream, e.Partition), need: e.Wanted}
	for ctx.Err() == nil {
		err := c.tryRoom(ctx, p)
		if err == nil {
			return
		}
		tell(err)
		p.wait.sleep(ctx)
	}
}
