package webhook

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

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

// Stream returns the name of the stream of a topic.
func (b *Bus) Stream(topic string) string { return b.name + "." + topic }

// A Log is one partition of a topic.
type Log struct {
	Topic     string
	Partition int
}

// String returns the log as states and settings name it: "orders/7".
func (l Log) String() string { return l.Topic + "/" + strconv.Itoa(l.Partition) }

// ParseLog is the inverse of Log.String.
func ParseLog(text string) (Log, error) {
	topic, number, ok := strings.Cut(text, "/")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 0 {
		return Log{}, fmt.Errorf("%q is no log of a topic", text)
	}
	return Log{topic, n}, nil
}

// Key returns the key of a log.
func (b *Bus) Key(l Log) string { return b.client.Keys().Partition(b.Stream(l.Topic), l.Partition) }

func (l Log) lastID(b *Bus) string {
	return store.LastID(b.client.Keys(), b.Stream(l.Topic), l.Partition)
}

func (l Log) holders(b *Bus) string {
	return store.Holders(b.client.Keys(), b.Stream(l.Topic), l.Partition)
}

// call returns a call of a script.
func call(script string, names []string, args ...any) *store.ScriptCall {
	return &store.ScriptCall{Script: scripts[script], Keys: names, Args: args, Confirm: script != "hold" && script != "drop"}
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

// swap replaces a field of a hash: see swap.lua. It may be repeated. The error is ErrConflict if another value was there.
func (b *Bus) swap(ctx context.Context, names []string, field, old, new string) error {
	now, err := b.do(ctx, "swap", names, field, old, new)
	if err == nil && now != new {
		return ErrConflict
	}
	return err
}

// unreadable is the error of a stored value that this release cannot read.
func unreadable(what, name string, err error) error {
	return fmt.Errorf("%s %s is not readable: %w", what, name, err)
}
