package keymigrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/store"
)

const (
	largeAtOnce = 4   // keys that may be large, copied in one round trip
	smallAtOnce = 250 // others
)

// copy copies everything under its new names to the other server, and compares it. No worker can
// change the target meanwhile, so what is there comes from an interrupted copy.
func (t *target) copy(ctx context.Context, mark store.Mark, report func(step string, done, of int)) error {
	if t == nil {
		return nil
	}
	if is, err := t.stand(ctx, mark); err != nil || is == standsArrived {
		return err
	}
	done := 0
	return whole(ctx, t.source.rdb, t.source.to, func(found []entry) error {
		found = slices.DeleteFunc(found, func(e entry) bool { return e.Kind == "meta" }) // they come last
		large := slices.DeleteFunc(slices.Clone(found), func(e entry) bool { return !mayBeLarge(e) })
		small := slices.DeleteFunc(found, mayBeLarge)
		parts := slices.AppendSeq(slices.Collect(slices.Chunk(large, largeAtOnce)), slices.Chunk(small, smallAtOnce))
		for _, part := range parts {
			if err := t.copyPart(ctx, mark, part); err != nil {
				return err
			}
			done += len(part)
			report("keys copied", done, 0)
		}
		return nil
	})
}

func mayBeLarge(e entry) bool { return e.kind.Large }

// A dumped is a key with its value.
type dumped struct {
	key, data string
	left      time.Duration // 0: it has no end
}

// copyPart copies keys. They keep what is left of their life, by the clock of either server.
func (t *target) copyPart(ctx context.Context, mark store.Mark, part []entry) error {
	// A process that slept must not bring back what the app has deleted there since.
	if is, err := t.stand(ctx, mark); err != nil || is != standsOurs {
		return cmp.Or(err, errOver)
	}
	all, err := dump(ctx, t.source.rdb, part)
	if err != nil {
		return fmt.Errorf("redis at %s: %w", t.source.client.Addr(), err)
	}
	restored, _ := piped(ctx, t.client.Redis(), all, func(p redis.Pipeliner, d dumped) *redis.StatusCmd {
		return p.Restore(ctx, d.key, d.left, d.data)
	})
	for i, r := range restored {
		if err := r.Err(); err != nil && !redis.HasErrorPrefix(err, "BUSYKEY") {
			return t.restoreError(ctx, all[i].key, err)
		}
	}
	return t.compare(ctx, all)
}

// dump reads keys and leaves out expired ones.
func dump(ctx context.Context, rdb redis.UniversalClient, part []entry) ([]dumped, error) {
	pipe := rdb.Pipeline()
	var data []*redis.StringCmd
	var left []*redis.DurationCmd
	for _, e := range part {
		data, left = append(data, pipe.Dump(ctx, e.key)), append(left, pipe.PTTL(ctx, e.key))
	}
	pipe.Exec(ctx) // every reply carries its error
	var out []dumped
	for i, e := range part {
		switch err := errors.Join(data[i].Err(), left[i].Err()); {
		case errors.Is(err, redis.Nil):
		case err != nil:
			return nil, fmt.Errorf("dump %s: %w", e.key, err)
		case left[i].Val() == -2: // since it was dumped
		default:
			out = append(out, dumped{e.key, data[i].Val(), max(left[i].Val(), 0)})
		}
	}
	return out, nil
}

// compare returns an error if a copy is not what it should be.
func (t *target) compare(ctx context.Context, all []dumped) error {
	copies, _ := piped(ctx, t.client.Redis(), all, func(p redis.Pipeliner, d dumped) *redis.StringCmd { return p.Dump(ctx, d.key) })
	for i, d := range all {
		err := copies[i].Err()
		if errors.Is(err, redis.Nil) && d.left > 0 {
			continue // expired
		}
		if err != nil {
			return fmt.Errorf("redis at %s: dump %s: %w", t.addr(), d.key, err)
		}
		if copies[i].Val() == d.data {
			continue
		}
		// Another version, or other settings, store the same in another form.
		same, err := t.same(ctx, d.key)
		if err != nil {
			return fmt.Errorf("compare %s: %w", d.key, err)
		}
		if !same {
			return fmt.Errorf("%s on the redis at %s is not what it is here: see what it is there, and delete it", d.key, t.addr())
		}
	}
	return nil
}

// same reports whether a key holds the same on both servers.
func (t *target) same(ctx context.Context, key string) (bool, error) {
	var seen [2]any
	for i, rdb := range []redis.UniversalClient{t.source.rdb, t.client.Redis()} {
		kind, err := rdb.Type(ctx, key).Result()
		if err != nil {
			return false, err
		}
		var content any
		switch kind {
		case "string":
			content, err = rdb.Get(ctx, key).Result()
		case "hash":
			content, err = rdb.HGetAll(ctx, key).Result()
		case "zset":
			content, err = rdb.ZRangeWithScores(ctx, key, 0, -1).Result()
		case "stream":
			content, err = contentOf(ctx, rdb, key)
		}
		if err != nil {
			return false, err
		}
		seen[i] = []any{kind, content}
	}
	return reflect.DeepEqual(seen[0], seen[1]), nil
}

// contentOf returns a stream's entries, the positions of its groups, and what is pending in them.
func contentOf(ctx context.Context, rdb redis.UniversalClient, key string) (any, error) {
	info, err := rdb.XInfoStream(ctx, key).Result()
	if err != nil {
		return nil, err
	}
	groups, err := rdb.XInfoGroups(ctx, key).Result()
	if err != nil {
		return nil, err
	}
	out := []any{info.Length, info.LastGeneratedID, info.MaxDeletedEntryID, info.EntriesAdded}
	for _, g := range groups {
		out = append(out, g.Name, g.LastDeliveredID, g.EntriesRead, g.Pending)
		for after := "-"; ; {
			part, err := rdb.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: key, Group: g.Name, Start: after, End: "+", Count: 1000}).Result()
			if err != nil {
				return nil, err
			}
			for _, p := range part {
				out, after = append(out, p.ID, p.Consumer), "("+p.ID
			}
			if len(part) < 1000 {
				break
			}
		}
	}
	for after := "-"; ; {
		part, err := rdb.XRangeN(ctx, key, after, "+", 1000).Result()
		if err != nil {
			return nil, err
		}
		for _, e := range part {
			for _, name := range slices.Sorted(maps.Keys(e.Values)) {
				out = append(out, e.ID, name, e.Values[name])
			}
			after = "(" + e.ID
		}
		if len(part) < 1000 {
			break
		}
	}
	return out, nil
}

// deleteCopied deletes on the source what is on the other server.
func (m *Mover) deleteCopied(ctx context.Context) error {
	st, err := m.source.read(ctx)
	if err != nil {
		return err
	}
	m.st = st
	is, err := m.target.stand(ctx, m.st.mark)
	if err != nil {
		return err
	}
	if is != standsArrived {
		return fmt.Errorf("the redis at %s does not have it: nothing is deleted", m.Target())
	}
	// The list first: without it, keys of a deletion that was cut off are found all the same.
	fields, err := m.source.rdb.HKeys(ctx, m.source.to.Streams()).Result()
	if err != nil {
		return err
	}
	if fields = slices.DeleteFunc(fields, func(f string) bool { return f == store.MarkField }); len(fields) > 0 {
		if err := m.source.rdb.HDel(ctx, m.source.to.Streams(), fields...).Err(); err != nil {
			return err
		}
	}
	done := 0
	return whole(ctx, m.source.rdb, m.source.to, func(found []entry) error {
		var names []string
		for _, e := range found {
			names = append(names, e.key)
		}
		if len(names) == 0 {
			return nil
		}
		done += len(names)
		m.o.Report("keys deleted", done, 0)
		return m.source.rdb.Unlink(ctx, names...).Err()
	})
}
