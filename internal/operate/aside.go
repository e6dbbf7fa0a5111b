package operate

import (
	"context"
	"maps"
	"slices"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
)

// Drop deletes dead letters of a processor for good. At an error it returns how many
// were deleted before.
func Drop(ctx context.Context, c *store.Client, stream, processor string, letters []inspect.DeadState) (int, error) {
	byPartition := map[int][]string{}
	for _, d := range letters {
		byPartition[d.Partition] = append(byPartition[d.Partition], d.Letter)
	}
	dropped := 0
	for _, n := range slices.Sorted(maps.Keys(byPartition)) {
		if err := c.DropDead(ctx, c.Partition(stream, processor, n), byPartition[n]); err != nil {
			return dropped, err
		}
		dropped += len(byPartition[n])
	}
	return dropped, nil
}

// Retry gives dead letters of a processor back to it, in this order: their events are
// parked, due at once, and have no attempt behind them. No other processor sees them. It
// leaves out what was dropped, replayed or retried meanwhile. most is how many
// events may be parked in a partition. At an error it returns those that were given
// back before; the others are as they were.
func Retry(ctx context.Context, c *store.Client, stream, processor string, letters []inspect.DeadState, most int64) ([]inspect.DeadState, error) {
	done, owners := []inspect.DeadState{}, map[int]store.Partition{}
	defer func() {
		for _, n := range slices.Sorted(maps.Keys(owners)) {
			c.NotifyOwner(ctx, owners[n])
		}
	}()
	for _, letter := range letters {
		p := c.Partition(stream, processor, letter.Partition)
		ok, err := c.Revive(ctx, p, letter.Letter, most)
		if err != nil {
			return done, err
		}
		if ok {
			done, owners[letter.Partition] = append(done, letter), p
		}
	}
	return done, nil
}

// An Event names a parked event of a processor.
type Event struct {
	Partition int
	ID        string
}

// A ParkedChange is what may be done with parked events of one partition; it returns
// those that it was done with.
type ParkedChange func(ctx context.Context, c *store.Client, p store.Partition, ids []string) ([]string, error)

// RetryNow makes parked events due.
func RetryNow(ctx context.Context, c *store.Client, p store.Partition, ids []string) ([]string, error) {
	return c.RetryNow(ctx, p, ids)
}

// DropParked gives parked events up for good; they leave no dead letter.
func DropParked(ctx context.Context, c *store.Client, p store.Partition, ids []string) ([]string, error) {
	if err := c.DropParked(ctx, p, ids); err != nil {
		return nil, err
	}
	return ids, nil
}

// ChangeParked does something with parked events, partition by partition, and returns
// with which ones it was done, also at an error.
func ChangeParked(ctx context.Context, c *store.Client, stream, processor string, states []inspect.RetryState, change ParkedChange) ([]Event, error) {
	byPartition := map[int][]string{}
	for _, r := range states {
		byPartition[r.Partition] = append(byPartition[r.Partition], r.ID)
	}
	done := []Event{}
	for _, n := range slices.Sorted(maps.Keys(byPartition)) {
		ids, err := change(ctx, c, c.Partition(stream, processor, n), byPartition[n])
		for _, id := range ids {
			done = append(done, Event{n, id})
		}
		if err != nil {
			return done, err
		}
	}
	return done, nil
}
