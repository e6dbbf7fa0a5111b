package webhook

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/store"
)

const (
	// Kind is the kind of a bus's stream; see store.Meta. Its partitions are the delivery partitions; its entries are hints that a
	// subscriber has changed.
	Kind = "bus"
	// Processor is the processor of the stream: the owner of a partition delivers to its subscribers.
	Processor = "deliver"
)

//go:embed lua/*.lua
var sources embed.FS

var scripts = store.ReadScripts(sources, "bus", store.Prelude, store.Fence)

// ErrConflict is returned by a replacement if something else was stored meanwhile: look again.
var ErrConflict = errors.New("something else was stored meanwhile")

// A Bus is what is in Redis of one. Its methods block until the server has answered or the connection gives up, and may be called
// concurrently.
type Bus struct {
	client *store.Client
	name   string
	trips  sync.Map // of Save, by node
}

// New returns a bus; it does no I/O.
func New(c *store.Client, name string) *Bus { return &Bus{client: c, name: name} }

// Name returns the name of the bus.
func (b *Bus) Name() string { return b.name }

// Client returns the client of the app.
func (b *Bus) Client() *store.Client { return b.client }

func (b *Bus) key(kind string, n int) string {
	return keys.MustKind(kind).Key(b.client.Keys(), b.name, "", "", n)
}

// TopicPartitions is how many partitions a topic has. Its log is one of them, by its name.
const TopicPartitions = 16

// TopicPartition returns the partition that is a topic's log: what runnel.XXHash says.
func TopicPartition(topic string) int { return int(xxhash.Sum64String(topic) % TopicPartitions) }

// Stream returns the name of the stream of a topic.
func (b *Bus) Stream(topic string) string { return b.name + "." + topic }

// Key returns the key of a topic's log.
func (b *Bus) Key(topic string) string {
	return b.client.Keys().Partition(b.Stream(topic), TopicPartition(topic))
}

func (b *Bus) holders(topic string) string {
	return store.Holders(b.client.Keys(), b.Stream(topic), TopicPartition(topic))
}

func (b *Bus) lastID(topic string) string {
	return store.LastID(b.client.Keys(), b.Stream(topic), TopicPartition(topic))
}

// call returns a call of a script.
func call(script string, names []string, args ...any) *store.ScriptCall {
	return &store.ScriptCall{Script: scripts[script], Keys: names, Args: args, Confirm: script != "hold"}
}

// do calls a script, and returns its answer as text.
func (b *Bus) do(ctx context.Context, script string, names []string, args ...any) (string, error) {
	c := call(script, names, args...)
	b.client.Run(ctx, c)
	return textOf(c), c.Err
}

// textOf returns the answer of a call as text.
func textOf(c *store.ScriptCall) string {
	if c.Reply == nil {
		return ""
	}
	return fmt.Sprint(c.Reply)
}

// swap replaces a field of a hash by the JSON of a value, and returns that, "" for nil: see swap.lua. It may be repeated. The error is
// ErrConflict if another value was there.
func (b *Bus) swap(ctx context.Context, names []string, field, old string, new any) (stored string, err error) {
	text, err := json.Marshal(new)
	if stored = string(text); stored == "null" {
		stored = ""
	}
	if err != nil || stored == old {
		return stored, err
	}
	now, err := b.do(ctx, "swap", names, field, old, stored)
	if err == nil && now != stored {
		err = ErrConflict
	}
	return stored, err
}

// find reads a value from a hash of the bus, nil for none.
func find[V any](ctx context.Context, b *Bus, kind, name string, read func(name, text string) (*V, error)) (*V, error) {
	text, err := b.client.Retrying.HGet(ctx, b.key(kind, 0), name).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return read(name, text)
}

// all reads all values of a hash of the bus, by name.
func all[V any](ctx context.Context, b *Bus, kind string, read func(name, text string) (*V, error)) (map[string]*V, error) {
	texts, err := b.client.Retrying.HGetAll(ctx, b.key(kind, 0)).Result()
	values := map[string]*V{}
	for name, text := range texts {
		var wrong error
		if values[name], wrong = read(name, text); wrong != nil {
			return nil, wrong
		}
	}
	return values, err
}

// decode reads a stored value that has a version, 1.
func decode(what, name, text string, into any, version *int) error {
	err := json.Unmarshal([]byte(text), into)
	if err == nil && *version != 1 {
		err = fmt.Errorf("it has version %d, this program knows 1", *version)
	}
	if err != nil {
		return unreadable(what, name, err)
	}
	return nil
}

// unreadable is the error of a stored value that this release cannot read.
func unreadable(what, name string, err error) error {
	return fmt.Errorf("%s %s is not readable: %w", what, name, err)
}
