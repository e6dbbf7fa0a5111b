package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/stage"
)

// saver saves entities one by one, at even intervals, each with its time. It has its own process, and
// calls the script itself: it is the same for all sides.
func saver(ctx context.Context, t Task, rdb *redis.Client) (Result, error) {
	saves, err := t.saves(ctx)
	if err != nil {
		return nil, err
	}
	began, step := time.Now(), time.Second/time.Duration(t.Rate)
	for i := range t.Events {
		time.Sleep(time.Until(began.Add(time.Duration(i) * step)))
		id := entityID(i)
		entity, err := blobs.make(id, t.Size)
		if err != nil {
			return nil, err
		}
		binary.BigEndian.PutUint64(entity[blobStamp:], uint64(time.Now().UnixNano()))
		save := append(slices.Clone(saves[runnel.XXHash.Func(id, t.Partitions)]), id, "*", []byte(entity))
		if err := rdb.Do(ctx, save...).Err(); err != nil {
			return nil, fmt.Errorf("save entity %d: %w", i, err)
		}
	}
	return Result{"sent": float64(t.Events)}, nil
}

// runnelSeen measures how long after its save a function gets an entity.
func runnelSeen(ctx context.Context, t Task) (Result, error) {
	app := newApp(t)
	defer app.Close()
	m, watch := newMeter(t.Events), &stopwatch{waits: make([]float64, t.Events)}
	blobs.declare(app, t, func(_ context.Context, e *blob) (stage.Result, error) {
		if err := watch.add((*e)[blobStamp:]); err != nil {
			return stage.Untouched, err
		}
		blobs.close(e)
		m.add(1)
		return stage.Updated, nil
	})
	if err := runWithSender(ctx, app, t, "saver", m); err != nil {
		return nil, err
	}
	return watch.result(), t.settled(ctx)
}

// A sleeper is a loop by hand over a set that waits for wakes.
type sleeper struct {
	t     Task
	rdb   *redis.Client
	all   map[string]bare // by log
	from  []string        // logs, then the last IDs that were read
	m     *meter
	watch *stopwatch
}

// bareSeen is runnelSeen by hand: save, the wake by a blocking XREAD, and a take, behind which the entity is
// there. With Whole it also ends the touch and begins the visit before, as the package does.
func bareSeen(ctx context.Context, t Task, rdb *redis.Client) (Result, error) {
	bares, err := t.bares(ctx, rdb)
	if err != nil {
		return nil, err
	}
	s := &sleeper{t: t, rdb: rdb, all: map[string]bare{}, m: newMeter(t.Events), watch: &stopwatch{waits: make([]float64, t.Events)}}
	for _, b := range bares {
		s.all[b.log] = b
		s.from = append(s.from, b.log)
		if err := s.work(ctx, b); err != nil { // it sleeps now
			return nil, err
		}
	}
	for range bares {
		s.from = append(s.from, "0")
	}
	if err := readWithSender(ctx, t, "saver", s.m, s.run); err != nil {
		return nil, err
	}
	return s.watch.result(), t.settled(ctx)
}

// run takes from the partitions that are woken, until all were seen.
func (s *sleeper) run(ctx context.Context) error {
	for s.m.n.Load() < s.m.want {
		streams, err := s.rdb.XRead(ctx, &redis.XReadArgs{Streams: s.from, Block: blockFor}).Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read wakes: %w", err)
		}
		for _, one := range streams {
			at := slices.Index(s.from, one.Stream)
			s.from[len(s.all)+at] = one.Messages[len(one.Messages)-1].ID
			if err := s.work(ctx, s.all[one.Stream]); err != nil {
				return err
			}
		}
	}
	return nil
}

// work takes what is due in a partition, and ends it, until it sleeps.
func (s *sleeper) work(ctx context.Context, b bare) error {
	for {
		taken, err := entitiesOf(s.rdb.Do(ctx, b.sleep...))
		if err != nil || len(taken) == 0 {
			return err
		}
		for i, call := range []func(bare, []owned) []any{bare.begins, bare.ends} {
			for _, e := range taken {
				if s.t.Whole == (i == 1) {
					if err := s.watch.add([]byte(e.payload[blobStamp:])); err != nil {
						return err
					}
				}
			}
			if err := committed(s.rdb.Do(ctx, call(b, taken)...)); err != nil {
				return err
			}
		}
		s.m.add(int64(len(taken)))
	}
}
