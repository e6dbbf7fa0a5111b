package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/keys"
)

// appName is the app that all streams belong to.
const appName = "bench"

// payloadField is where Runnel keeps the payload of an entry.
const payloadField = "data"

var keyNames = keys.Keys{App: appName, Layout: keys.Standalone}

// An Order is the record of all cases.
type Order struct {
	Customer string  `json:"customer"`
	Number   int64   `json:"number"`
	Amount   float64 `json:"amount"`
	Note     string  `json:"note"`
}

func (o Order) key() string { return o.Customer }

// customers is how many keys there are.
const customers = 1000

func orderAt(i int, note string) Order {
	return Order{Customer: fmt.Sprintf("customer-%03d", i*7919%customers), Number: int64(1_000_000 + i), Amount: 12.34, Note: note}
}

func codecNamed(name string) codec.Codec {
	if name == "json" {
		return codec.JSON
	}
	return codec.MsgPack
}

// noteFor returns the note that makes an encoded order so many bytes long.
func noteFor(codec codec.Codec, size int) (string, error) {
	n := 0
	for range 5 { // a longer text may have a longer header
		data, err := codec.Encode(orderAt(0, strings.Repeat("x", n)))
		if err != nil {
			return "", err
		}
		if len(data) == size {
			return strings.Repeat("x", n), nil
		}
		n = max(n+size-len(data), 0)
	}
	return "", fmt.Errorf("no %s order has %d bytes", codec.Name(), size)
}

func orders(codec codec.Codec, n, size int) ([]Order, error) {
	note, err := noteFor(codec, size)
	if err != nil {
		return nil, err
	}
	out := make([]Order, n)
	for i := range out {
		out[i] = orderAt(i, note)
	}
	return out, nil
}

// fillBytes is how much goes in one pipeline.
const fillBytes = 256 << 10

// fill appends the events of a task to its stream, as many to each partition.
func fill(ctx context.Context, rdb *redis.Client, t Task) error {
	codec := codecNamed(t.Codec)
	note, err := noteFor(codec, t.Size)
	if err != nil {
		return fmt.Errorf("fill stream %s: %w", t.Stream, err)
	}
	return appendAll(ctx, rdb, t, func(i int) (*redis.XAddArgs, error) {
		data, err := codec.Encode(orderAt(i, note))
		return &redis.XAddArgs{Stream: keyNames.Partition(t.Stream, i%t.Partitions), Values: []any{payloadField, data}}, err
	})
}

// appendAll appends what entry returns for each event of a task.
func appendAll(ctx context.Context, rdb *redis.Client, t Task, entry func(i int) (*redis.XAddArgs, error)) error {
	p, each := rdb.Pipeline(), fillBytes/t.Size
	for i := range t.Events {
		args, err := entry(i)
		if err == nil {
			p.XAdd(ctx, args)
		}
		if err == nil && (i%each == each-1 || i == t.Events-1) {
			_, err = p.Exec(ctx)
		}
		if err != nil {
			return fmt.Errorf("fill stream %s: %w", t.Stream, err)
		}
	}
	return nil
}

func (t Task) logs() []string {
	out := make([]string, t.Partitions)
	for i := range out {
		out[i] = keyNames.Partition(t.Stream, i)
	}
	return out
}
