package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/delivery"
)

// A Topic is what is stored of one. Its log goes on when it is removed and made again: numbers and positions stay what they are.
type Topic struct {
	V          int       `json:"v"`
	Publisher  string    `json:"publisher,omitempty"` // the client that may publish; "": the first that does
	Partitions int       `json:"partitions"`
	Created    time.Time `json:"created"`

	stored string
}

// decode reads a stored value that has a version, 1.
func decode[T any](what, name, text string, into *T, version func(*T) int) error {
	err := json.Unmarshal([]byte(text), into)
	if v := version(into); err == nil && v != 1 {
		err = fmt.Errorf("it has version %d, this program knows 1", v)
	}
	if err != nil {
		return unreadable(what, name, err)
	}
	return nil
}

func readTopic(name, text string) (*Topic, error) {
	t := &Topic{stored: text}
	return t, decode("topic", name, text, t, func(t *Topic) int { return t.V })
}

// Topic returns a topic, nil if there is none.
func (b *Bus) Topic(ctx context.Context, name string) (*Topic, error) {
	text, err := b.client.Retrying.HGet(ctx, b.key("whtopic", 0), name).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return readTopic(name, text)
}

// Topics returns all topics by name.
func (b *Bus) Topics(ctx context.Context) (map[string]*Topic, error) {
	texts, err := b.client.Retrying.HGetAll(ctx, b.key("whtopic", 0)).Result()
	all := map[string]*Topic{}
	for name, text := range texts {
		t, wrong := readTopic(name, text)
		if wrong != nil {
			return nil, wrong
		}
		all[name] = t
	}
	return all, err
}

// SetTopic replaces what is stored of a topic, as old was read; nil is for a topic that is not there, and takes it away.
func (b *Bus) SetTopic(ctx context.Context, name string, old, new *Topic) error {
	was, is := "", ""
	if old != nil {
		was = old.stored
	}
	if new != nil {
		new.V = 1
		text, err := json.Marshal(new)
		if err != nil {
			return err
		}
		new.stored, is = string(text), string(text)
	}
	return b.swap(ctx, "whtopic", name, was, is)
}

// Extents returns what logs have: the IDs of their first and last entries. Last is that of the last entry ever.
func (b *Bus) Extents(ctx context.Context, logs []Log) (map[Log]delivery.Extent, error) {
	pipe := b.client.Retrying.Pipeline()
	firsts, lasts := make([]*redis.XMessageSliceCmd, len(logs)), make([]*redis.StringCmd, len(logs))
	for i, l := range logs {
		lasts[i], firsts[i] = pipe.Get(ctx, b.lastID(l)), pipe.XRangeN(ctx, b.Key(l), "-", "+", 1) // in this order: what is empty has lost the last one
	}
	_, err := pipe.Exec(ctx)
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	all := map[Log]delivery.Extent{}
	for i, l := range logs {
		var e delivery.Extent
		if last, err := lasts[i].Result(); err == nil {
			if e.Last, err = delivery.ParseID(last); err != nil {
				return nil, unreadable("the last ID of log", l.String(), err)
			}
		}
		if some := firsts[i].Val(); len(some) > 0 {
			if e.First, err = delivery.ParseID(some[0].ID); err != nil {
				return nil, unreadable("the first entry of log", l.String(), err)
			}
			if before := e.First.N - 1; before > e.Last.N { // others came meanwhile, and went
				e.Last = delivery.ID{MS: e.First.MS, N: before}
			}
		}
		all[l] = e
	}
	return all, nil
}

// A Position is an ID in a log.
type Position struct {
	Log Log
	At  delivery.ID
}

// Next returns the IDs of the first entries behind positions, zero where there are none.
func (b *Bus) Next(ctx context.Context, positions []Position) ([]delivery.ID, error) {
	pipe := b.client.Retrying.Pipeline()
	firsts := make([]*redis.XMessageSliceCmd, len(positions))
	for i, p := range positions {
		firsts[i] = pipe.XRangeN(ctx, b.Key(p.Log), "("+p.At.String(), "+", 1)
	}
	if len(positions) == 0 {
		return nil, nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	ids := make([]delivery.ID, len(positions))
	for i := range positions {
		if some := firsts[i].Val(); len(some) > 0 {
			var err error
			if ids[i], err = delivery.ParseID(some[0].ID); err != nil {
				return nil, unreadable("an entry of log", positions[i].Log.String(), err)
			}
		}
	}
	return ids, nil
}
