package webhook

import (
	"cmp"
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/delivery"
)

// A Topic is what is stored of one. Its log goes on when it is removed and made again: numbers and positions stay what they are.
type Topic struct {
	V         int    `json:"v"`
	Publisher string `json:"publisher,omitempty"` // the client that may publish; "": the first that does

	stored string
}

func readTopic(name, text string) (*Topic, error) {
	t := &Topic{stored: text}
	return t, decode("topic", name, text, t, &t.V)
}

// Topic returns a topic, nil if there is none.
func (b *Bus) Topic(ctx context.Context, name string) (*Topic, error) {
	return find(ctx, b, "whtopic", name, readTopic)
}

// Topics returns all topics by name.
func (b *Bus) Topics(ctx context.Context) (map[string]*Topic, error) {
	return all(ctx, b, "whtopic", readTopic)
}

// ReplaceTopic replaces what is stored of a topic, as it was read; nil stands for no topic. The error is ErrConflict if it was changed meanwhile.
func (b *Bus) ReplaceTopic(ctx context.Context, name string, old, new *Topic) error {
	if old == nil {
		old = &Topic{}
	}
	stored, err := b.swap(ctx, []string{b.key("whtopic", 0)}, name, old.stored, new)
	if new != nil {
		new.stored = stored
	}
	return err
}

// Extents returns what logs have: the IDs of their first and last entries. Last is that of the last entry ever.
func (b *Bus) Extents(ctx context.Context, logs []string) (map[string]delivery.Extent, error) {
	pipe := b.client.Retrying.Pipeline()
	lasts, starts := make([]*redis.StringCmd, len(logs)), make([]Position, len(logs))
	for i, log := range logs {
		lasts[i], starts[i].Log = pipe.Get(ctx, b.lastID(log)), log
	}
	_, _ = pipe.Exec(ctx)              // each has its error
	firsts, err := b.Next(ctx, starts) // behind the last ones: what is empty has lost the last one
	if err != nil {
		return nil, err
	}
	all := map[string]delivery.Extent{}
	for i, log := range logs {
		e := delivery.Extent{First: firsts[i]}
		if err := lasts[i].Err(); err != nil && !errors.Is(err, redis.Nil) {
			return nil, err
		}
		if e.Last, err = delivery.ParseID(cmp.Or(lasts[i].Val(), "0-0")); err != nil {
			return nil, unreadable("the last ID of log", log, err)
		}
		if before := e.First.N - 1; before > e.Last.N { // others came meanwhile, and went
			e.Last = delivery.ID{MS: e.First.MS, N: before}
		}
		all[log] = e
	}
	return all, nil
}

// A Position is an ID in a log.
type Position struct {
	Log string
	At  delivery.ID
}

// Next returns the IDs of the first entries behind positions, zero where there are none.
func (b *Bus) Next(ctx context.Context, positions []Position) ([]delivery.ID, error) {
	pipe := b.client.Retrying.Pipeline()
	firsts := make([]*redis.XMessageSliceCmd, len(positions))
	for i, p := range positions {
		firsts[i] = pipe.XRangeN(ctx, b.Key(p.Log), "("+p.At.String(), "+", 1)
	}
	_, err := pipe.Exec(ctx)
	ids := make([]delivery.ID, len(positions))
	for i, p := range positions {
		for _, entry := range firsts[i].Val() {
			var wrong error
			if ids[i], wrong = delivery.ParseID(entry.ID); wrong != nil {
				return nil, unreadable("an entry of log", p.Log, wrong)
			}
		}
	}
	return ids, err
}
