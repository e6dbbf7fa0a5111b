package keymigrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// A Plan is what is moved, by kind.
type Plan struct {
	Kinds   []Count
	Resumed bool     // a begun move goes on; what it has renamed counts only if it is still to be copied
	Refused *Refusal // why Run would change nothing, nil for no reason
}

// A Count counts the keys of a kind.
type Count struct {
	Kind  string // keys.Kind.What
	Keys  int
	Items int64 // entries, events, fields: what such keys hold
	Bytes int64 // in the memory of Redis; -1: it does not let us ask
}

// Keys returns the number of keys of all kinds.
func (p *Plan) Keys() (n int) {
	for _, c := range p.Kinds {
		n += c.Keys
	}
	return n
}

// kindOf returns the kind of a key; ok is false if such keys are not moved: they expire by
// themselves, as a lock does.
func kindOf(p keys.Part) (kind keys.Kind, ok bool) {
	kind, _ = keys.KindOf(p.Kind)
	return kind, kind.What != ""
}

// An entry is a key that was found.
type entry struct {
	key string
	keys.Part
	kind keys.Kind
}

// scan passes the app's keys under some names to tell, in parts, but for those that expire by
// themselves. A key may come twice.
func scan(ctx context.Context, rdb redis.UniversalClient, k keys.Keys, tell func([]entry) error) error {
	for _, pattern := range k.Patterns() {
		for cursor := uint64(0); ; {
			found, next, err := rdb.Scan(ctx, cursor, pattern, 1000).Result()
			if err != nil {
				return fmt.Errorf("look for keys: %w", err)
			}
			var part []entry
			for _, key := range found {
				p, known := k.Parse(key)
				if kind, moved := kindOf(p); known && moved {
					part = append(part, entry{key, p, kind})
				}
			}
			if err := tell(part); err != nil {
				return err
			}
			if cursor = next; cursor == 0 {
				break
			}
		}
	}
	return nil
}

// whole is scan without fences and the list of streams; but for a few, each key comes once.
func whole(ctx context.Context, rdb redis.UniversalClient, k keys.Keys, tell func([]entry) error) error {
	return scan(ctx, rdb, k, func(found []entry) error {
		fences, err := piped(ctx, rdb, found, func(p redis.Pipeliner, e entry) *redis.StringCmd {
			return p.GetRange(ctx, e.key, 0, int64(len(fence))-1)
		})
		if err != nil && !redisconn.IsReply(err) || len(found) == 0 {
			return err
		}
		var part []entry
		for i, e := range found {
			if fences[i].Val() != fence && (e.Kind != "meta" || e.Names != "") {
				part = append(part, e)
			}
		}
		return tell(part)
	})
}

// count counts what is to be moved.
func (m *Mover) count(ctx context.Context) (*Plan, error) {
	p, counted := &Plan{}, map[string]bool{}
	names := []keys.Keys{m.source.from}
	if m.target != nil && m.st.mark.State != "" { // what is renamed is still to be copied
		names = append(names, m.source.to)
	}
	for _, k := range names {
		err := whole(ctx, m.source.rdb, k, func(found []entry) error {
			found = slices.DeleteFunc(found, func(e entry) bool { return counted[e.key] })
			for _, e := range found {
				counted[e.key] = true
			}
			return m.source.measure(ctx, p, found)
		})
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

// measure adds keys to a plan.
func (so *source) measure(ctx context.Context, p *Plan, found []entry) error {
	pipe := so.rdb.Pipeline()
	lengths, sizes := make([]*redis.Cmd, len(found)), make([]*redis.IntCmd, len(found))
	for i, e := range found {
		if e.kind.Counted() {
			lengths[i] = pipe.Do(ctx, e.kind.Count, e.key)
		}
		sizes[i] = pipe.MemoryUsage(ctx, e.key)
	}
	if _, err := pipe.Exec(ctx); err != nil && !redisconn.IsReply(err) && !errors.Is(err, redis.Nil) {
		return err
	}
	for i, e := range found {
		at := slices.IndexFunc(p.Kinds, func(c Count) bool { return c.Kind == e.kind.What })
		if at < 0 {
			at = len(p.Kinds)
			p.Kinds = append(p.Kinds, Count{Kind: e.kind.What})
		}
		c := &p.Kinds[at]
		c.Keys++
		switch {
		case lengths[i] != nil:
			n, err := lengths[i].Int64()
			if err != nil {
				return fmt.Errorf("%s: %w", e.key, err)
			}
			c.Items += n
		case e.kind.Count == "":
			c.Items++
		}
		if err := sizes[i].Err(); err != nil && err != redis.Nil || c.Bytes < 0 {
			c.Bytes = -1
		} else {
			c.Bytes += sizes[i].Val()
		}
	}
	sort.Slice(p.Kinds, func(i, j int) bool { return orderOf(p.Kinds[i].Kind) < orderOf(p.Kinds[j].Kind) })
	return nil
}

func orderOf(what string) int {
	return slices.IndexFunc(keys.Kinds, func(k keys.Kind) bool { return k.What == what })
}

// free returns an error if a new name is taken by something else. After a move, a log that is there
// once more came late, and is appended.
func (so *source) free(ctx context.Context, mark store.Mark) error {
	late := mark.State == store.MarkMoved
	return whole(ctx, so.rdb, so.from, func(found []entry) error {
		pipe := so.rdb.Pipeline()
		var there []*redis.StatusCmd
		var fences []*redis.StringCmd
		for _, e := range found {
			there = append(there, pipe.Type(ctx, so.to.Name(e.Part)))
			fences = append(fences, pipe.GetRange(ctx, so.to.Name(e.Part), 0, int64(len(fence))-1))
		}
		if len(found) == 0 {
			return nil
		}
		if _, err := pipe.Exec(ctx); err != nil && !redisconn.IsReply(err) {
			return err
		}
		for i, e := range found {
			other := there[i].Val() != "none" && fences[i].Val() != fence
			if other && e.Kind != "id" && !(late && e.Kind == "strm") {
				return taken(so.to.Name(e.Part))
			}
		}
		return nil
	})
}
