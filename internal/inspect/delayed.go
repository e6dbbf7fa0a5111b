package inspect

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// delayedPerTrip bounds how many delayed events, with their fields, are read at
// once.
const delayedPerTrip = 500

// A DelayedState is an event that waits for its time.
type DelayedState struct {
	ID        string    `json:"id"` // as its sender knows it
	Partition int       `json:"partition"`
	Due       time.Time `json:"due"`
	Sent      time.Time `json:"sent"`
	Key       string    `json:"key"` // that was given with the record, else ""; commands know the others

	Entry redisconn.Entry `json:"-"` // without values where there is too much for a list
	Bytes int64           `json:"-"` // of the values
}

// Delayed returns delayed events of these partitions in the order in which they
// are due, those of one time by partition; at most limit, 0 for all, and of their values at most so many bytes. What changes
// meanwhile may be missing or be there twice.
func Delayed(ctx context.Context, c *store.Client, stream string, partitions []int, limit int, most int64) ([]DelayedState, error) {
	out := []DelayedState{}
	partitions, err := occupied(ctx, c, stream, "", partitions, func(v store.View) bool { return v.Delayed > 0 })
	if err != nil {
		return nil, err
	}
	var trips pace
	held := stock{most: most}
	for _, p := range partitions {
		for from := 0; limit == 0 || from < limit; {
			page := trips.next(delayedPerTrip)
			if limit > 0 {
				page = min(page, limit-from)
			}
			events, err := c.Delayed(ctx, stream, p, from, page)
			if err != nil {
				return nil, err
			}
			bytes := int64(0)
			for _, e := range events {
				s := delayedState(p, e)
				s.Entry = held.put(s.Entry)
				bytes, out = bytes+s.Bytes, append(out, s)
			}
			trips.came(len(events), bytes)
			if limit > 0 && len(out) > 2*limit { // so that memory does not hold all there are
				slices.SortStableFunc(out, byDue)
				for i := range out[limit:] {
					held.held -= bytesOf(out[limit+i].Entry.Values)
				}
				clear(out[limit:])
				out = out[:limit]
			}
			if from += len(events); len(events) < page {
				break
			}
		}
	}
	slices.SortStableFunc(out, byDue)
	if limit > 0 && len(out) > limit {
		out = out[:limit]
	}
	return out, nil
}

func byDue(a, b DelayedState) int {
	return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Partition, b.Partition))
}

func delayedState(partition int, e store.DelayedEvent) DelayedState {
	s := DelayedState{
		ID: store.DelayedID(partition, e.ID), Partition: partition, Due: e.At.UTC(), Sent: e.Sent.UTC(),
		Entry: redisconn.Entry{ID: e.ID, Values: e.Values}, Bytes: bytesOf(e.Values),
	}
	key, _ := e.Values[store.KeyField].(string)
	s.Key = store.KeyText(key)
	return s
}
