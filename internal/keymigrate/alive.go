package keymigrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/rebalance"
)

// atOnce is how many commands one round trip takes.
const atOnce = 500

// alive returns a *Refusal while a worker runs for the app, under the old or the new names.
func (so *source) alive(ctx context.Context, streams []stream) error {
	for _, k := range []keys.Keys{so.from, so.to} {
		for _, key := range []string{k.Leader(), k.OldLeader()} {
			leader, err := so.rdb.Get(ctx, key).Result()
			switch {
			case err == nil:
				name, _, _ := strings.Cut(leader, "/")
				return stopFirst("its tasks are", name)
			case err != redis.Nil:
				return fmt.Errorf("%s: %w", key, err)
			}
		}
		for _, s := range streams {
			for _, p := range s.meta.Processors {
				if err := so.aliveProcessor(ctx, k, &s, p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func stopFirst(what, worker string) error {
	return &Refusal{fmt.Sprintf("%s run by worker %s: stop it first; one that died counts until its locks have expired", what, worker)}
}

func (so *source) aliveProcessor(ctx context.Context, k keys.Keys, s *stream, processor string) error {
	name := s.name + "/" + processor
	group, err := so.group(ctx, k, s.name, processor)
	if err != nil {
		return err
	}
	beats := map[string]string{} // to worker
	for id, e := range group.Executors {
		beats[k.Beat(s.name, processor, id)] = e.Worker
	}
	for id := range group.Python {
		beats[k.Beat(s.name, processor, id)] = "of Python's runnel"
	}
	there, err := so.first(ctx, slices.Sorted(maps.Keys(beats)))
	if err != nil {
		return err
	}
	if there != "" {
		return stopFirst(name+" is", beats[there])
	}
	locks := []string{k.AdminLock(s.name, processor)}
	for n := range s.meta.Partitions {
		locks = append(locks, k.Lock(s.name, processor, n))
	}
	if there, err = so.first(ctx, locks); err != nil || there == "" {
		return err
	}
	holder, err := so.rdb.Get(ctx, there).Result()
	if err != nil && err != redis.Nil {
		return fmt.Errorf("%s: %w", there, err)
	}
	executor, _, _ := strings.Cut(holder, ":")
	if e, known := group.Executors[executor]; known {
		return stopFirst(name+" is", e.Worker)
	}
	return &Refusal{fmt.Sprintf("%s: %q holds the lock %s: stop that worker first; one that died counts until its locks have expired", name, executor, there)}
}

// group returns the membership of a processor; a fence is none.
func (so *source) group(ctx context.Context, k keys.Keys, stream, processor string) (rebalance.Group, error) {
	key := k.Membership(stream, processor)
	stored, err := so.rdb.Get(ctx, key).Bytes()
	if errors.Is(err, redis.Nil) || strings.HasPrefix(string(stored), fence) {
		return rebalance.Group{}, nil
	}
	if err != nil {
		return rebalance.Group{}, fmt.Errorf("%s: %w", key, err)
	}
	g, err := rebalance.Parse(stored)
	if err != nil {
		return rebalance.Group{}, fmt.Errorf("%s: %w", key, err)
	}
	return g, nil
}

// piped sends one command for each item in one round trip. The error is the connection's or the
// first failed command's; each reply has its own.
func piped[T any, R redis.Cmder](ctx context.Context, rdb redis.UniversalClient, items []T, queue func(redis.Pipeliner, T) R) ([]R, error) {
	pipe := rdb.Pipeline()
	replies := make([]R, len(items))
	for i, item := range items {
		replies[i] = queue(pipe, item)
	}
	_, err := pipe.Exec(ctx)
	return replies, err
}

// first returns the first of these keys that exists, "" if none does.
func (so *source) first(ctx context.Context, names []string) (string, error) {
	for part := range slices.Chunk(names, atOnce) {
		replies, err := piped(ctx, so.rdb, part, func(p redis.Pipeliner, key string) *redis.IntCmd { return p.Exists(ctx, key) })
		if err != nil {
			return "", err
		}
		for i, key := range part {
			if replies[i].Val() > 0 {
				return key, nil
			}
		}
	}
	return "", nil
}
