package runnel

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/runnel-go/runnel/internal/rstream"
)

// slabSize is how many events are allocated at once.
const slabSize = 32

// next makes the next batch, as the loop wants it. An entry that cannot be
// decoded ends the batch before it and goes alone.
func (c *consumer[T]) next() error {
	if len(c.rest) > 0 && !c.src.Live() {
		c.rest = nil
		return io.EOF
	}
	if len(c.rest) == 0 {
		entries, err := c.src.Take(c.want.n, c.want.within)
		if err != nil {
			return err
		}
		c.rest = entries
	}
	n := min(c.want.n, len(c.rest))
	c.open(n)
	for i, entry := range c.rest[:n] {
		e := c.event(entry, i)
		if !c.want.raw {
			var zero T
			c.records = append(c.records, zero)
			if err := c.stream.decode(e, &c.records[i]); err != nil {
				if i > 0 {
					n, c.records = i, c.records[:i]
					break
				}
				c.bad, n = &DecodeError{Event: e, Codec: c.stream.codecName(), Err: err}, 1
			}
		}
		c.batch.Events = append(c.batch.Events, e)
		if c.bad != nil {
			break
		}
	}
	c.rest = c.rest[n:]
	c.decoded = true
	return nil
}

// open makes room for a batch of up to n events. Loops over batches may keep
// their slices; loops over single events never see them.
func (c *consumer[T]) open(n int) {
	c.bad = nil
	if c.want.n == 1 {
		c.batch.Events = c.one[:0]
		c.records = c.records[:0]
		return
	}
	c.batch.Events = make([]*Event, 0, n)
	c.records = nil
	if !c.want.raw {
		c.records = make([]T, 0, n)
	}
}

func (c *consumer[T]) event(entry rstream.Entry, index int) *Event {
	if len(c.slab) == 0 {
		c.slab = make([]Event, slabSize)
	}
	e := &c.slab[0]
	c.slab = c.slab[1:]
	e.Stream, e.Partition, e.Epoch = c.batch.Stream, c.batch.Partition, c.batch.Epoch
	e.ID, e.values, e.source, e.index = entry.ID, entry.Values, c.shared, index
	e.Redelivered = c.src.Redelivered(entry.ID)
	return e
}

// recordsOf returns the records of some events of the current batch. A second
// call for the same batch decodes anew: the first may have changed them.
func (c *consumer[T]) recordsOf(b *Batch, events []*Event) ([]T, error) {
	if c.decoded && len(events) == len(c.records) {
		c.decoded = false
		return c.records, nil
	}
	out := make([]T, len(events))
	for i, e := range events {
		if err := c.stream.decode(e, &out[i]); err != nil {
			return nil, &DecodeError{Event: e, Codec: c.stream.codecName(), Err: err}
		}
	}
	return out, nil
}

// errNoData says that an entry has neither payload field.
var errNoData = errors.New(`no field "data" or "json"`)

func (s *Stream[T]) codecName() string { return s.effective.Codec.Name() }

// decode fills *record from the entry of e. Settings must have been read.
func (s *Stream[T]) decode(e *Event, record *T) (err error) {
	defer recoverInto(&err)
	codec := s.effective.Codec
	if f, ok := codec.(FieldCodec); ok {
		return f.DecodeFields(e.Fields(), record)
	}
	data, isJSON, ok := e.payload()
	switch {
	case !ok:
		return noPayload(e)
	case isJSON:
		codec = JSON
	}
	return codec.Decode(data, record)
}

func noPayload(e *Event) error {
	if e.values == nil {
		return errors.New("the entry was deleted")
	}
	names := make([]string, 0, len(e.values))
	for name := range e.values {
		names = append(names, name)
	}
	slices.Sort(names)
	return fmt.Errorf("%w, but %q", errNoData, names)
}
