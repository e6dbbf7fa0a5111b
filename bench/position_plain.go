package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
)

// plainPosition processes the backlog of a stream from its beginning with XREAD: readers share the partitions, each with
// a goroutine that stores, for each partition, the last ID that was handled. It is for the case that nothing breaks.
func plainPosition(ctx context.Context, t Task, rdb *redis.Client) (Result, error) {
	m, logs := newMeter(t.Events), t.logs()
	m.skip = t.ahead(t.Count)
	var readers errgroup.Group
	for n := range t.Readers {
		after := map[string]string{}
		for i := n; i < len(logs); i += t.Readers {
			after[logs[i]] = "0"
		}
		if len(after) > 0 {
			readers.Go(func() error { return readOn(ctx, t, rdb, after, m) })
		}
	}
	if err := readers.Wait(); err != nil {
		return nil, err
	}
	return m.result(), rdb.Del(ctx, t.Run).Err()
}

// readOn reads partitions behind their positions until nothing comes any more.
func readOn(ctx context.Context, t Task, rdb *redis.Client, after map[string]string, m *meter) error {
	handled := make(chan map[string]string, ackDepth)
	var store errgroup.Group
	store.Go(func() (err error) {
		for at := range handled { // to the end: the reader must not wait
			for more := len(handled); more > 0; more-- {
				for log, id := range <-handled {
					at[log] = id
				}
			}
			if err == nil {
				err = rdb.HSet(ctx, t.Run, at).Err()
			}
		}
		return err
	})
	read := func() error {
		for {
			var logs, ids []string
			for log, id := range after {
				logs, ids = append(logs, log), append(ids, id)
			}
			streams, err := rdb.XRead(ctx, &redis.XReadArgs{Streams: append(logs, ids...), Count: int64(t.Count), Block: -1}).Result()
			if errors.Is(err, redis.Nil) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("read: %w", err)
			}
			at := map[string]string{}
			for _, s := range streams {
				m.add(int64(len(s.Messages)))
				at[s.Stream] = s.Messages[len(s.Messages)-1].ID
				after[s.Stream] = at[s.Stream]
			}
			handled <- at
		}
	}
	err := read()
	close(handled)
	return errors.Join(err, store.Wait())
}
