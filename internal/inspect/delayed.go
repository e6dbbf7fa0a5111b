package inspect

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/rstream"
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
	Key       string    `json:"key"` // "" where the key function tells it

	Entry rstream.Entry `json:"-"`
}

// Delayed returns delayed events of these partitions in the order in which they
// are due, those of one time by partition; at most limit, 0 for all. What changes
// meanwhile may be missing or be there twice.
func Delayed(ctx context.Context, c *rstream.Client, stream string, partitions []int, limit int) ([]DelayedState, error) {
	out := []DelayedState{}
	partitions, err := occupied(ctx, c, stream, "", partitions, func(v rstream.View) bool { return v.Delayed > 0 })
	if err != nil {
		return nil, err
	}
	for _, p := range partitions {
		for from := 0; limit == 0 || from < limit; {
			page := delayedPerTrip
			if limit > 0 {
				page = min(page, limit-from)
			}
			events, err := c.Delayed(ctx, stream, p, from, page)
			if err != nil {
				return nil, err
			}
			for _, e := range events {
				out = append(out, delayedState(p, e))
			}
			if from += len(events); len(events) < page {
				break
			}
		}
	}
	slices.SortStableFunc(out, func(a, b DelayedState) int {
		return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Partition, b.Partition))
	})
	if limit > 0 && len(out) > limit {
		out = out[:limit]
	}
	return out, nil
}

func delayedState(partition int, e rstream.DelayedEvent) DelayedState {
	s := DelayedState{
		ID: rstream.DelayedID(partition, e.ID), Partition: partition, Due: e.At.UTC(), Sent: e.Sent.UTC(),
		Entry: rstream.Entry{ID: e.ID, Values: e.Values},
	}
	key, _ := e.Values[rstream.KeyField].(string)
	s.Key = rstream.KeyText(key)
	return s
}
