package main

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
)

// A plainEntry is what Send would append.
type plainEntry struct {
	log  string
	data []byte
}

// plainSend sends with XADD MAXLEN ~, Count entries in a pipeline, from as many goroutines as
// Readers says. The entries are encoded before, or with Decode on the way.
func plainSend(ctx context.Context, t Task, rdb *redis.Client) (Result, error) {
	codec := codecNamed(t.Codec)
	records, err := orders(codec, t.distinct(), t.Size)
	if err != nil {
		return nil, err
	}
	logs := t.logs()
	encode := func(o Order) (plainEntry, error) {
		data, err := codec.Encode(o)
		return plainEntry{logs[runnel.XXHash.Func(o.key(), t.Partitions)], data}, err
	}
	entries := make([]plainEntry, len(records))
	for i, o := range records {
		if entries[i], err = encode(o); err != nil {
			return nil, err
		}
	}
	return t.produce(ctx, func(ctx context.Context, from, to int) error {
		if t.Count == 1 {
			return rdb.XAdd(ctx, xadd(entries[from])).Err()
		}
		pipe := rdb.Pipeline()
		for i := from; i < to; i++ {
			e, err := entries[i], error(nil)
			if t.Decode {
				e, err = encode(records[i])
			}
			if err != nil {
				return err
			}
			pipe.XAdd(ctx, xadd(e))
		}
		_, err := pipe.Exec(ctx)
		return err
	})
}

func xadd(e plainEntry) *redis.XAddArgs {
	return &redis.XAddArgs{Stream: e.log, MaxLen: producedLength, Approx: true, Values: []any{payloadField, e.data}}
}
