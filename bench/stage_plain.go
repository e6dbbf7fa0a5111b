package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	istage "github.com/runnel-go/runnel/internal/stage"
	"github.com/runnel-go/runnel/internal/store"
)

// A recorder keeps the last call of a script that a client of Runnel has made, for a loop that is written by hand.
type recorder struct{ last []any }

// DialHook does nothing.
func (r *recorder) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook does nothing.
func (r *recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook keeps the last call.
func (r *recorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, c := range cmds {
			if c.Name() == "evalsha" {
				r.last = c.Args()
			}
		}
		return next(ctx, cmds)
	}
}

// A bare is a partition of a set as a loop written by hand sees it: the calls of its scripts, whose
// arguments are what the package would send.
type bare struct {
	log    string
	take   []any // complete
	sleep  []any // the same, and sleeps if nothing is due
	commit []any // up to the fence; key 6 is the queue of the stage
}

// An owned is an entity that a loop by hand has taken.
type owned struct{ id, version, passes, payload string }

const (
	bareFence  = "by hand"
	bareNumber = 1
	bareBytes  = 4 << 20
)

// learn passes what is needed to learn the calls of each partition to fn.
func (t Task) learn(fn func(p store.Partition, set *istage.Set, rec *recorder) error) error {
	return t.withCalls(func(client *store.Client, set *istage.Set) error {
		rec := &recorder{}
		client.NoRetry.AddHook(rec)
		for n := range t.Partitions {
			if err := fn(client.Partition(t.Stream, istage.Processor, n), set, rec); err != nil {
				return err
			}
		}
		return nil
	})
}

// saves returns the call that stores entities, of each partition, without any.
func (t Task) saves(ctx context.Context) (saves [][]any, err error) {
	return saves, t.learn(func(p store.Partition, set *istage.Set, rec *recorder) error {
		save := &istage.Save{Partition: p.Number}
		set.Save(ctx, save)
		saves = append(saves, rec.last)
		return save.Err
	})
}

// bares learns the calls of an owner while nobody owns the partitions, so that they do nothing, and makes
// the loop by hand their owner.
func (t Task) bares(ctx context.Context, rdb *redis.Client) (all []bare, err error) {
	return all, t.learn(func(p store.Partition, set *istage.Set, rec *recorder) error {
		b := bare{log: p.Log}
		for _, sleep := range []bool{false, true} {
			take := &istage.Take{Partition: p.Number, Fence: bareFence, Number: bareNumber, Sleep: sleep, MaxBytes: bareBytes}
			for _, stage := range []string{istage.Touch, busyStage} {
				take.Asks = append(take.Asks, istage.Ask{Stage: stage, Most: t.Count})
			}
			set.Take(ctx, take)
			if b.take, b.sleep = b.sleep, rec.last; !errors.Is(take.Err, store.ErrFenced) {
				return fmt.Errorf("take of a partition without an owner: %w", take.Err)
			}
		}
		end := istage.End{Settle: []istage.Settlement{{Stage: istage.Touch, What: istage.Ends}, {Stage: busyStage, What: istage.Puts, Due: istage.In(0)}}}
		commit := &istage.Commit{Partition: p.Number, Fence: bareFence, Ends: []istage.End{end}}
		if set.Commit(ctx, commit); !errors.Is(commit.Err, store.ErrFenced) {
			return fmt.Errorf("commit of a partition without an owner: %w", commit.Err)
		}
		const behind = 7 + 2*5 // the end and its two visits
		b.commit = rec.last[:len(rec.last)-behind]
		all = append(all, b)
		return rdb.HSet(ctx, p.Own, "tenure", bareFence).Err()
	})
}

// bareStage visits all entities of a set, in one goroutine: in one pipeline it takes touches of all
// partitions, in the next one it ends them and begins the visits, in the third it ends these.
func bareStage(ctx context.Context, t Task, rdb *redis.Client) (Result, error) {
	all, err := t.bares(ctx, rdb)
	if err != nil {
		return nil, err
	}
	m := newMeter(t.Events)
	for m.n.Load() < m.want {
		takes, taken, closed := make([]*redis.Cmd, len(all)), make([][]owned, len(all)), 0
		pipe := rdb.Pipeline()
		for i, b := range all {
			takes[i] = pipe.Do(ctx, b.take...)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, fmt.Errorf("take: %w", err)
		}
		for i := range all {
			if taken[i], err = entitiesOf(takes[i]); err != nil {
				return nil, err
			}
			closed += len(taken[i])
		}
		if closed == 0 {
			return nil, fmt.Errorf("nothing more to take after %d entities", m.n.Load())
		}
		for _, call := range []func(bare, []owned) []any{bare.begins, bare.ends} {
			commits, pipe := []*redis.Cmd{}, rdb.Pipeline()
			for i, b := range all {
				if len(taken[i]) > 0 {
					commits = append(commits, pipe.Do(ctx, call(b, taken[i])...))
				}
			}
			if _, err := pipe.Exec(ctx); err != nil {
				return nil, fmt.Errorf("commit: %w", err)
			}
			for _, c := range commits {
				if err := committed(c); err != nil {
					return nil, err
				}
			}
		}
		m.add(int64(closed))
	}
	return m.result(), t.settled(ctx)
}

// entitiesOf returns the entities of a take, which brought nothing but touches.
func entitiesOf(take *redis.Cmd) (all []owned, err error) {
	reply, err := take.Slice()
	if err != nil {
		return nil, fmt.Errorf("take: %w", err)
	}
	for one := reply[6:]; len(one) > 0; one = one[5:] {
		id, isText := one[1].(string)
		text, isThere := one[4].(string)
		if one[0] != istage.Touch || !isText || !isThere {
			return nil, fmt.Errorf("not a touch of an entity: %q", one[:5])
		}
		version, rest, _ := strings.Cut(text, " ")
		passes, payload, _ := strings.Cut(rest, " ")
		all = append(all, owned{id, version, passes, payload})
	}
	return all, nil
}

// begins returns the call that ends touches, and begins to visit their entities.
func (b bare) begins(all []owned) []any {
	args := slices.Clone(b.commit)
	for _, e := range all {
		args = append(args, e.id, "", 0, "0", "", bareNumber, 2, istage.Touch, "e", 0, "", "", busyStage, "b", 6, "+0", bareNumber)
	}
	return args
}

// ends returns the call that stores what the visits have closed, and ends them.
func (b bare) ends(all []owned) []any {
	args := slices.Clone(b.commit)
	for _, e := range all {
		args = append(args, e.id, "s", e.version, e.passes, closedBlob(e.payload), bareNumber, 1, busyStage, "e", 0, "", "")
	}
	return args
}

// committed returns an error unless a commit has ended all of its visits.
func committed(commit *redis.Cmd) error {
	reply, err := commit.Slice()
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	for i := 0; i < len(reply); i += 3 {
		if reply[i] != string(istage.OK) && reply[i] != string(istage.Begun) {
			return fmt.Errorf("commit: a visit is %v", reply[i])
		}
	}
	return nil
}

// bareSave stores entities by pipelines of one script for each partition.
func bareSave(ctx context.Context, t Task, rdb *redis.Client) (Result, error) {
	saves, err := t.saves(ctx)
	if err != nil {
		return nil, err
	}
	payloads := make([]string, t.distinct())
	for i := range payloads {
		data, err := blobs.payload(entityID(i), t.Size)
		if err != nil {
			return nil, err
		}
		payloads[i] = string(data)
	}
	return t.produce(ctx, func(ctx context.Context, from, to int) error {
		pipe := rdb.Pipeline()
		for n, share := range t.shares(from, to) {
			if len(share) == 0 {
				continue
			}
			args := slices.Clone(saves[n])
			for _, i := range share {
				args = append(args, entityID(i), "*", payloads[i])
			}
			pipe.Do(ctx, args...)
		}
		_, err := pipe.Exec(ctx)
		return err
	})
}
