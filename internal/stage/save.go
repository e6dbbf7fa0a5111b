package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/store"
)

// Any stands for whatever version is stored, or none.
const Any = -1

func versionText(v int64) string {
	if v == Any {
		return "*"
	}
	return strconv.FormatInt(v, 10)
}

// A Change is an entity to store. Version must be the stored one: 0 for none, or Any.
type Change struct {
	ID, Payload string
	Version     int64
}

// Saved is what became of a Change.
type Saved struct {
	Version int64  // the new one, 0 if it was not stored
	Found   Entity // with another version, in its place
}

// A Save stores entities of one partition, at most 128, in their order, each with a touch. Repeated, it
// stores a Change of Any version once more, and refuses others.
type Save struct {
	Partition int
	Changes   []Change

	Saved []Saved // none with an error other than redisconn.ErrNotReplicated
	Err   error
}

// Save runs saves, confirmed by as many replicas as the app's Durability says.
func (s *Set) Save(ctx context.Context, saves ...*Save) {
	calls := make([]*store.ScriptCall, len(saves))
	for i, one := range saves {
		p := s.place(one.Partition)
		args := make([]any, 0, 3*len(one.Changes))
		for _, c := range one.Changes {
			args = append(args, c.ID, versionText(c.Version), c.Payload)
		}
		calls[i] = &store.ScriptCall{
			Script: saveScript, Args: args, Confirm: true,
			Keys: []string{s.key("ent", p.Number, ""), s.key("entseq", p.Number, ""), s.queue(p.Number, Touch), p.Own, p.Log},
		}
	}
	s.run(ctx, calls, func(i int, texts []string, err error) { saves[i].Saved, saves[i].Err = savedOf(texts, err) })
}

func savedOf(texts []string, err error) ([]Saved, error) {
	out, errs := make([]Saved, len(texts)/2), []error{err} // ErrNotReplicated comes with a reply
	for i := range out {
		if texts[2*i] != "" {
			out[i].Version, err = strconv.ParseInt(texts[2*i], 10, 64)
		} else {
			out[i].Found, err = entityOf(texts[2*i+1])
		}
		errs = append(errs, err)
	}
	return out, errors.Join(errs...)
}

// Visit has a stage, or Touch, visit entities of a partition, at most 128, not before a time. Earlier
// visits that wait stay; IDs of no entity are dropped when they are due. It may be repeated.
func (s *Set) Visit(ctx context.Context, n int, stage string, at Due, ids ...string) error {
	p := s.place(n)
	args := []any{string(at)}
	for _, id := range ids {
		args = append(args, id)
	}
	c := &store.ScriptCall{Script: visitScript, Keys: []string{s.queue(n, stage), p.Own, p.Log}, Args: args, Confirm: true}
	s.client.Run(ctx, c)
	return c.Err
}

// ErrVersion is returned if an entity has another version than the one that was named.
var ErrVersion = errors.New("another version is stored")

// Delete deletes an entity with its visits, if it has the version or that is Any, and reports whether it
// was there. It may be repeated.
func (s *Set) Delete(ctx context.Context, n int, id string, version int64) (there bool, err error) {
	args := []any{id, versionText(version)}
	for _, stage := range s.stages {
		args = append(args, stage)
	}
	c := &store.ScriptCall{Script: deleteScript, Keys: s.all(n), Args: args, Confirm: true}
	if s.client.Run(ctx, c); c.Err != nil {
		return false, c.Err
	}
	if c.Reply == int64(-1) {
		return true, ErrVersion
	}
	return c.Reply == int64(1), nil
}

// Get returns an entity, with Version 0 if there is none.
func (s *Set) Get(ctx context.Context, n int, id string) (Entity, error) {
	stored, err := s.client.Retrying.HGet(ctx, s.key("ent", n, ""), id).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return Entity{}, err
	}
	return entityOf(stored)
}

// TouchAll touches all entities of a set's partitions, one after another a step apart, and returns how many.
func (s *Set) TouchAll(ctx context.Context, partitions int, step time.Duration) (n int, err error) {
	for partition := range partitions {
		for cursor := ""; cursor != "0"; {
			next, touched, err := s.TouchPage(ctx, partition, cmp.Or(cursor, "0"), 128, time.Duration(n)*step, step)
			if err != nil {
				return n, fmt.Errorf("set %s partition %d: %w", s.name, partition, err)
			}
			cursor, n = next, n+int(touched)
		}
	}
	return n, nil
}

// TouchPage touches about most entities of a partition, the first one after a time and the others step
// apart. cursor is "0" at first, and again at the end. A repetition touches the same once more.
func (s *Set) TouchPage(ctx context.Context, n int, cursor string, most int, first, step time.Duration) (next string, touched int64, err error) {
	p := s.place(n)
	c := &store.ScriptCall{
		Script: pageScript, Keys: []string{s.key("ent", n, ""), s.queue(n, Touch), p.Own, p.Log},
		Args: []any{cursor, most, first.Milliseconds(), step.Microseconds()},
	}
	return s.page(ctx, c)
}

// page runs a call that answers with the next cursor and a number.
func (s *Set) page(ctx context.Context, c *store.ScriptCall) (next string, n int64, err error) {
	if s.client.Run(ctx, c); c.Err != nil {
		return "", 0, c.Err
	}
	texts, err := textsOf(c.Reply)
	if err == nil && len(texts) == 2 {
		n, err = strconv.ParseInt(texts[1], 10, 64)
		next = texts[0]
	}
	return next, n, err
}
