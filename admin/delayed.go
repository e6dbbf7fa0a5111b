package admin

import (
	"cmp"
	"context"
	"fmt"
	"sort"
	"time"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
)

// A DelayedEvent is an event that waits for its time.
type DelayedEvent struct {
	ID        string    `json:"id"` // as in Sent.ID
	Partition int       `json:"partition"`
	Due       time.Time `json:"due"`
	Sent      time.Time `json:"sent"`
	Key       string    `json:"key"` // explicit key of the record, else ""; commands derive the others

	Fields map[string]any `json:"-"` // of the entry, each a string; nil beyond DelayedFilter.MaxBytes
	Bytes  int64          `json:"-"` // of the fields
}

// A DelayedFilter selects delayed events. A nil filter, and each zero field, selects all.
type DelayedFilter struct {
	Partitions []int
	Limit      int   // maximum of events, those that are due first
	MaxBytes   int64 // of all Fields together: further events have none
}

// Delayed are the delayed events of one stream.
type Delayed struct {
	c      *core
	stream string
}

// Delayed returns the delayed events of a stream. It does no I/O.
func (c *Client) Delayed(stream string) *Delayed { return &Delayed{&c.core, stream} }

// delayedPerTrip bounds how many delayed events, with their fields, are read at once.
const delayedPerTrip = 500

// List returns delayed events in the order in which they are due, then by partition. Events that
// change meanwhile may be missing or listed twice.
func (d *Delayed) List(ctx context.Context, f *DelayedFilter) ([]DelayedEvent, error) {
	if f == nil {
		f = &DelayedFilter{}
	}
	client, m, err := d.c.meta(ctx, d.stream)
	if err != nil {
		return nil, err
	}
	partitions, err := chosen(d.stream, m, f.Partitions)
	if err != nil {
		return nil, err
	}
	partitions, err = occupied(ctx, client, d.stream, "", partitions, func(v store.View) bool { return v.Delayed > 0 })
	if err != nil {
		return nil, err
	}
	r := &delayedReader{client: client, stream: d.stream, f: f, chosen: []DelayedEvent{}}
	for _, n := range partitions {
		if err := r.read(ctx, n); err != nil {
			return nil, err
		}
	}
	r.sort()
	return atMost(f.Limit, r.chosen), nil
}

type delayedReader struct {
	client *store.Client
	stream string
	f      *DelayedFilter
	trips  inspect.Pace
	held   int64 // bytes of the fields of the selected events
	chosen []DelayedEvent
}

func (r *delayedReader) read(ctx context.Context, partition int) error {
	for from := 0; r.f.Limit == 0 || from < r.f.Limit; {
		page := r.trips.Next(delayedPerTrip)
		if r.f.Limit > 0 {
			page = min(page, r.f.Limit-from)
		}
		events, err := r.client.Delayed(ctx, r.stream, partition, from, page)
		if err != nil {
			return err
		}
		bytes := int64(0)
		for _, e := range events {
			one := delayedOf(partition, e)
			bytes += one.Bytes
			if r.f.MaxBytes > 0 && r.held+one.Bytes > r.f.MaxBytes {
				one.Fields = nil
			} else {
				r.held += one.Bytes
			}
			r.chosen = append(r.chosen, one)
		}
		r.trips.Came(len(events), bytes)
		r.forget()
		if from += len(events); len(events) < page {
			break
		}
	}
	return nil
}

// forget drops events beyond the limit, so that memory does not hold all of them.
func (r *delayedReader) forget() {
	if r.f.Limit == 0 || len(r.chosen) <= 2*r.f.Limit {
		return
	}
	r.sort()
	rest := r.chosen[r.f.Limit:]
	for _, e := range rest {
		r.held -= inspect.Bytes(e.Fields)
	}
	clear(rest)
	r.chosen = r.chosen[:r.f.Limit]
}

func (r *delayedReader) sort() {
	sort.SliceStable(r.chosen, func(i, j int) bool {
		a, b := &r.chosen[i], &r.chosen[j]
		return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Partition, b.Partition)) < 0
	})
}

func delayedOf(partition int, e store.DelayedEvent) DelayedEvent {
	key, _ := e.Values[store.KeyField].(string)
	return DelayedEvent{
		ID: store.DelayedID(partition, e.ID), Partition: partition, Due: e.At.UTC(), Sent: e.Sent.UTC(),
		Key: store.KeyText(key), Fields: e.Values, Bytes: inspect.Bytes(e.Values),
	}
}

// Cancel removes delayed events permanently. It returns the IDs of the removed events, even with an
// error, without those that became due or were cancelled meanwhile.
func (d *Delayed) Cancel(ctx context.Context, ids ...string) ([]string, error) {
	return d.change(ctx, ids, (*store.Client).Cancel)
}

// Fire makes delayed events due now, and returns their IDs as Cancel does.
func (d *Delayed) Fire(ctx context.Context, ids ...string) ([]string, error) {
	return d.change(ctx, ids, (*store.Client).Fire)
}

// A DelayedIDError is returned for an ID that no delayed event of the stream can have.
type DelayedIDError struct{ Stream, ID string }

// Error names the ID and the stream.
func (e *DelayedIDError) Error() string {
	return fmt.Sprintf("stream %s: %q is no delayed event, such as 3/0000000000000042", e.Stream, e.ID)
}

func (d *Delayed) change(ctx context.Context, ids []string, change func(c *store.Client, ctx context.Context, stream string, partition int, id string) (bool, error)) ([]string, error) {
	client, m, err := d.c.meta(ctx, d.stream)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if n, _, ok := store.ParseDelayedID(id); !ok || n >= m.Partitions {
			return nil, &DelayedIDError{d.stream, id}
		}
	}
	done := []string{}
	for _, id := range ids {
		partition, name, _ := store.ParseDelayedID(id)
		ok, err := change(client, ctx, d.stream, partition, name)
		if err != nil {
			return done, err
		}
		if ok {
			done = append(done, id)
		}
	}
	return done, nil
}
