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

// TopicPartitions is how many partitions a topic has. It is in one of them, by its name.
const TopicPartitions = 16

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

// SetPublisher makes a client the publisher of a topic, as that was read, nil for one that is not there; and returns it as it is then. The error is
// ErrConflict if it was changed meanwhile.
func (b *Bus) SetPublisher(ctx context.Context, name string, t *Topic, client string) (*Topic, error) {
	next := Topic{V: 1, Partitions: TopicPartitions, Created: time.Now().UTC()}
	if t != nil {
		next = *t
	}
	was := next.stored
	next.Publisher = client
	text, err := json.Marshal(&next)
	if err != nil {
		return nil, err
	}
	next.stored = string(text)
	return &next, b.swap(ctx, []string{b.key("whtopic", 0)}, name, was, next.stored)
}

// RemoveTopic takes a topic away, as it was read. The error is ErrConflict if it was changed meanwhile.
func (b *Bus) RemoveTopic(ctx context.Context, name string, t *Topic) error {
	return b.swap(ctx, []string{b.key("whtopic", 0)}, name, t.stored, "")
}

// Extents returns what logs have: the IDs of their first and last entries. Last is that of the last entry ever.
func (b *Bus) Extents(ctx context.Context, logs []Log) (map[Log]delivery.Extent, error) {
	pipe := b.client.Retrying.Pipeline()
	lasts, starts := make([]*redis.StringCmd, len(logs)), make([]Position, len(logs))
	for i, l := range logs {
		lasts[i], starts[i].Log = pipe.Get(ctx, l.lastID(b)), l
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	firsts, err := b.Next(ctx, starts) // behind the last ones: what is empty has lost the last one
	if err != nil {
		return nil, err
	}
	all := map[Log]delivery.Extent{}
	for i, l := range logs {
		e := delivery.Extent{First: firsts[i]}
		switch last, err := lasts[i].Result(); {
		case err == nil:
			if e.Last, err = delivery.ParseID(last); err != nil {
				return nil, unreadable("the last ID of log", l.String(), err)
			}
		case !errors.Is(err, redis.Nil):
			return nil, err
		}
		if before := e.First.N - 1; before > e.Last.N { // others came meanwhile, and went
			e.Last = delivery.ID{MS: e.First.MS, N: before}
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
	_, err := pipe.Exec(ctx)
	ids := make([]delivery.ID, len(positions))
	for i, p := range positions {
		for _, entry := range firsts[i].Val() {
			var wrong error
			if ids[i], wrong = delivery.ParseID(entry.ID); wrong != nil {
				return nil, unreadable("an entry of log", p.Log.String(), wrong)
			}
		}
	}
	return ids, err
}
