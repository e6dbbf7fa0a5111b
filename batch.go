package runnel

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/retryqueue"
	"github.com/runnel-go/runnel/internal/worker"
)

const (
	// slabSize is the number of small values that are allocated at once.
	slabSize = 32
	// slabPayload is the largest payload of an event in a slab. A slab, with the payloads
	// of all its events, stays in memory as long as one of its events does.
	slabPayload = 4 << 10
)

// slabs hands out events, batches and slices. Nothing is used twice, so that an event
// that an application keeps does not change. Large events are allocated alone.
type slabs struct {
	events  []Event
	batches []Batch
	ones    []*Event
}

// oneOf returns a value of a slab, or one that is allocated alone.
func oneOf[V any](slab *[]V, alone bool) *V {
	if alone {
		return new(V)
	}
	if len(*slab) == 0 {
		*slab = make([]V, slabSize)
	}
	v := &(*slab)[0]
	*slab = (*slab)[1:]
	return v
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

// A batcher takes entries from the source and makes batches of the shape that the loop
// requested.
type batcher[T any] struct {
	stream   *Stream[T]
	shared   *eventSource
	src      worker.Input
	policy   Policy
	retry    *retryqueue.Retry
	straight bool // see ahead
	want     want // the loop's last request

	rest    []redisconn.Entry // taken, not yet in a batch
	slabs   slabs
	head    Batch       // what all batches have in common
	batch   *Batch      // the current one; middleware may change it
	events  []*Event    // of the current batch, as delivered
	records []T         // by Event.index
	decoded bool        // records are fresh: nothing else has read them
	takes   int64       // upper bound of the bytes of the current batch's records
	shares  int64       // the current batch's part of the app's room for large records
	bad     error       // the current batch is one event that cannot be decoded
	only    Batch       // batch, where only the loop sees it
	out     delivery[T] // the last delivery to the loop
}

// take takes entries, unless there are some. There may be none where rows have ended.
func (b *batcher[T]) take() (err error) {
	if len(b.rest) > 0 && !b.src.Live() {
		b.rest = nil
		return io.EOF
	}
	if len(b.rest) == 0 {
		b.letGo()
		b.rest, err = b.src.Take(b.want.n, b.want.within)
	}
	return err
}

// form makes a batch of the entries taken, of the shape that the loop requested, unless
// the ownership ends meanwhile. An entry that cannot be decoded ends the batch before it and
// is a batch alone. A large record begins a batch. No row ends within a batch.
func (b *batcher[T]) form(ctx context.Context) error {
	n := b.beforeEnds(min(b.want.n, len(b.rest)))
	b.letGo()
	b.clear(n)
	large := false
	for i, entry := range b.rest[:n] {
		e := b.event(entry, i)
		if deadly := b.history(e); b.retry == nil && b.policy != Halt {
			b.bad = deadly
		}
		if !b.want.raw && b.bad == nil {
			var zero T
			b.records = append(b.records, zero)
			if err := b.decode(ctx, e, i); err != nil {
				if i > 0 {
					n, b.records = i, b.records[:i]
					break
				}
				if errors.Is(err, errEnded) {
					return err
				}
				b.bad, n = &DecodeError{Event: e, Codec: b.stream.encoding.codecName(), Err: err}, 1
			}
		}
		b.events = append(b.events, e)
		large = large || isLarge(entry)
		if b.bad != nil {
			break
		}
	}
	b.rest = b.rest[n:]
	if b.retry != nil && len(b.rest) > 0 {
		// If this batch fails, some of the remaining entries may have to wait for it.
		b.src.Untake(b.rest)
		b.rest = nil
	}
	b.decoded = true
	if b.straight && !b.want.keep {
		b.batch, b.only.Events = &b.only, b.events
		return nil
	}
	b.batch = oneOf(&b.slabs.batches, large)
	*b.batch = b.head
	b.batch.Events = append(b.slabs.list(len(b.events), large), b.events...)
	return nil
}

// letGo drops the references to the processed batch: the next one may be a long time in
// coming.
func (b *batcher[T]) letGo() {
	b.forget()
	clear(b.events[:cap(b.events)])
	b.events = b.events[:0]
	b.batch, b.out.events = nil, nil
}

// clear makes room for a batch of up to n events. Loops over batches may keep
// the records; loops over single ones never see their slice.
func (b *batcher[T]) clear(n int) {
	b.bad = nil
	switch {
	case !b.want.keep:
		b.records = b.records[:0]
	case b.want.raw:
		b.records = nil
	default:
		b.records = make([]T, 0, n)
	}
}

func (b *batcher[T]) event(entry redisconn.Entry, index int) *Event {
	e := oneOf(&b.slabs.events, isLarge(entry))
	e.Stream, e.Partition, e.Epoch = b.head.Stream, b.head.Partition, b.head.Epoch
	e.ID, e.values, e.source, e.index = entry.ID, entry.Values, b.shared, index
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

// history sets what is known of an event from before it was taken. The error is the
// reason if the event counts as failed and must not be delivered to the function again.
func (b *batcher[T]) history(e *Event) (deadly error) {
	prior := b.src.Prior(e.ID)
	e.Attempt, e.Redelivered = prior.Attempts, prior.Redelivered
	return prior.Deadly
}

// recordsOf returns the records of some events of the current batch. A second call for
// the same batch decodes anew, as the first caller may have changed the records. So does
// a call for events that middleware put in another order.
func (b *batcher[T]) recordsOf(events []*Event) ([]T, error) {
	if b.decoded && len(events) == len(b.records) && slices.Equal(events, b.events) {
		b.decoded = false
		records := b.records
		if b.want.keep {
			b.records = nil // a later loop over single events must not write into it
		}
		return records, nil
	}
	out := make([]T, len(events))
	for i, e := range events {
		if _, err := b.stream.encoding.decodeWithin(e, &out[i], b.stream.effective.MaxRecord); err != nil {
			return nil, &DecodeError{Event: e, Codec: b.stream.encoding.codecName(), Err: err}
		}
	}
	return out, nil
}
