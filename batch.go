package runnel

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/runnel-go/runnel/internal/redisconn"
)

const (
	// slabSize is how many small things are allocated at once.
	slabSize = 32
	// slabPayload is the largest payload of an event of a slab: a slab is in memory for as
	// long as one of its events is, and so are the payloads of all.
	slabPayload = 4 << 10
)

// slabs are events, batches and slices to hand out. Nothing is used twice, so
// that an event that an application keeps stays as it is. What is alone is in memory by itself.
type slabs struct {
	events  []Event
	batches []Batch
	ones    []*Event
}

func (s *slabs) event(alone bool) *Event {
	if alone {
		return new(Event)
	}
	if len(s.events) == 0 {
		s.events = make([]Event, slabSize)
	}
	e := &s.events[0]
	s.events = s.events[1:]
	return e
}

func (s *slabs) batch(alone bool) *Batch {
	if alone {
		return new(Batch)
	}
	if len(s.batches) == 0 {
		s.batches = make([]Batch, slabSize)
	}
	b := &s.batches[0]
	s.batches = s.batches[1:]
	return b
}

// list returns an empty list for n events.
func (s *slabs) list(n int, alone bool) []*Event {
	if n > 1 || alone {
		return make([]*Event, 0, n)
	}
	if len(s.ones) == 0 {
		s.ones = make([]*Event, slabSize)
	}
	one := s.ones[:0:1]
	s.ones = s.ones[1:]
	return one
}

// next makes the next batch, as the loop wants it. An entry that cannot be
// decoded ends the batch before it and goes alone. A large record begins a batch.
func (c *consumer[T]) next() error {
	if len(c.rest) > 0 && !c.src.Live() {
		c.rest = nil
		return io.EOF
	}
	if len(c.rest) == 0 {
		c.letGo()
		entries, err := c.src.Take(c.want.n, c.want.within)
		if err != nil {
			return err
		}
		c.rest = entries
	}
	c.form()
	return nil
}

// form makes a batch of what was taken.
func (c *consumer[T]) form() {
	n := min(c.want.n, len(c.rest))
	c.letGo()
	c.clear(n)
	large := false
	for i, entry := range c.rest[:n] {
		e := c.event(entry, i)
		if deadly := c.history(e); c.retry == nil && c.policy != Halt {
			c.bad = deadly
		}
		if !c.want.raw && c.bad == nil {
			var zero T
			c.records = append(c.records, zero)
			if err := c.decode(e, i); err != nil {
				if i > 0 {
					n, c.records = i, c.records[:i]
					break
				}
				c.bad, n = &DecodeError{Event: e, Codec: c.stream.codecName(), Err: err}, 1
			}
		}
		c.events = append(c.events, e)
		large = large || isLarge(entry)
		if c.bad != nil {
			break
		}
	}
	c.rest = c.rest[n:]
	if c.retry != nil && len(c.rest) > 0 {
		// If this batch fails, some of them may have to wait for it.
		c.src.Untake(c.rest)
		c.rest = nil
	}
	c.decoded = true
	if c.straight && !c.want.keep {
		c.batch, c.only.Events = &c.only, c.events
		return
	}
	c.batch = c.slabs.batch(large)
	*c.batch = c.head
	c.batch.Events = append(c.slabs.list(len(c.events), large), c.events...)
}

// letGo lets go of the batch that was processed: what comes next may be long in coming.
func (c *consumer[T]) letGo() {
	c.forget()
	clear(c.events[:cap(c.events)])
	c.events = c.events[:0]
	c.batch, c.out.events = nil, nil
}

// clear makes room for a batch of up to n events. Loops over batches may keep
// the records; loops over single ones never see their slice.
func (c *consumer[T]) clear(n int) {
	c.bad = nil
	switch {
	case !c.want.keep:
		c.records = c.records[:0]
	case c.want.raw:
		c.records = nil
	default:
		c.records = make([]T, 0, n)
	}
}

func (c *consumer[T]) event(entry redisconn.Entry, index int) *Event {
	e := c.slabs.event(isLarge(entry))
	e.Stream, e.Partition, e.Epoch = c.head.Stream, c.head.Partition, c.head.Epoch
	e.ID, e.values, e.source, e.index = entry.ID, entry.Values, c.shared, index
	return e
}

// isLarge reports whether an entry is too large to share a slab with others.
func isLarge(entry redisconn.Entry) bool {
	data, ok := entry.Values[payloadField].(string)
	if ok && len(entry.Values) == 1 {
		return len(data) > slabPayload // as most are; the loop takes longer
	}
	e := Event{values: entry.Values}
	return e.size() > slabPayload
}

// history notes what had become of an event before it was taken. The error says why the event
// counts as one that failed, where the function may not have it again.
func (c *consumer[T]) history(e *Event) (deadly error) {
	prior := c.src.Prior(e.ID)
	e.Attempt, e.Redelivered = prior.Attempts, prior.Redelivered
	return prior.Deadly
}

// recordsOf returns the records of some events of the current batch. A second
// call for the same batch decodes anew: the first may have changed them. So does
// one for events that middleware put in another order.
func (c *consumer[T]) recordsOf(events []*Event) ([]T, error) {
	if c.decoded && len(events) == len(c.records) && slices.Equal(events, c.events) {
		c.decoded = false
		records := c.records
		if c.want.keep {
			c.records = nil // a later loop over single events must not write into it
		}
		return records, nil
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
