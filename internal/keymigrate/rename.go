package keymigrate

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/store"
)

//go:embed lua/rename.lua
var renameSource string

var renameScript = redis.NewScript(renameSource)

// fence is the text of a fence. No string of the framework begins with it.
const fence = "moved: this key has another name now, and a process that uses this one has old settings"

// What is left under the old name of a key.
const (
	leaveNothing = ""
	leaveFence   = "fence"
	leaveLog     = "log" // a fence; what is there once more is appended
	leaveID      = "id"  // nothing; what is there under both names says the same
)

// A group is keys that are renamed together.
type group struct {
	names  []string // from and to
	leaves []string // of each key
	locks  []string // none of which may be held
}

func (g *group) add(from, to, leaves string) {
	g.names, g.leaves = append(g.names, from, to), append(g.leaves, leaves)
}

// A renamer gives the keys on the source their new names.
type renamer struct {
	*source
	st     *state
	fenced map[string]bool // see Mover
	report func(step string, done, of int)
}

// rename gives everything on the source its new name.
func (r *renamer) rename(ctx context.Context) error {
	total := 0
	for _, s := range r.st.streams {
		total += s.meta.Partitions
	}
	done := 0
	for _, s := range r.st.streams {
		for n := range s.meta.Partitions {
			if err := r.run(ctx, r.partition(&s, n)); err != nil {
				return fmt.Errorf("stream %s partition %d: %w", s.name, n, err)
			}
			done++
			r.report("partitions renamed", done, total)
		}
	}
	for _, s := range r.st.streams {
		for _, p := range s.meta.Processors {
			g, err := r.processor(ctx, s.name, p)
			if err == nil {
				err = r.run(ctx, g)
			}
			if err != nil {
				return fmt.Errorf("stream %s: processor %s: %w", s.name, p, err)
			}
		}
	}
	var app group
	for _, of := range []func(keys.Keys) string{keys.Keys.AppControl, keys.Keys.Rules, keys.Keys.Blocks, keys.Keys.Audit, keys.Keys.Tasks} {
		app.add(of(r.from), of(r.to), leaveFence)
	}
	app.locks = []string{r.from.Leader(), r.from.OldLeader()}
	if err := r.run(ctx, &app); err != nil {
		return err
	}
	return r.sweep(ctx)
}

// partition returns the keys of a partition, but for those of sent IDs.
func (r *renamer) partition(s *stream, n int) *group {
	g := &group{}
	for _, kind := range keys.Kinds {
		if kind.ID || kind.What == "" { // no names are known, or it is not moved
			continue
		}
		leaves := leaveNothing
		if kind.Name == "strm" {
			leaves = leaveLog
		}
		for _, owner := range s.meta.Owners(kind) {
			g.add(kind.Key(r.from, s.name, owner, "", n), kind.Key(r.to, s.name, owner, "", n), leaves)
		}
	}
	for _, p := range s.meta.Processors {
		g.locks = append(g.locks, r.from.Lock(s.name, p, n))
	}
	return g
}

// processor returns the keys of a processor that belong to no partition.
func (r *renamer) processor(ctx context.Context, stream, p string) (*group, error) {
	members, err := r.group(ctx, r.from, stream, p)
	if err != nil {
		return nil, err
	}
	g := &group{locks: []string{r.from.AdminLock(stream, p)}}
	for _, id := range slices.Sorted(maps.Keys(members.Executors)) {
		g.locks = append(g.locks, r.from.Beat(stream, p, id))
	}
	g.add(r.from.Membership(stream, p), r.to.Membership(stream, p), leaveFence)
	g.add(r.from.Control(stream, p), r.to.Control(stream, p), leaveFence)
	return g, nil
}

// run renames a group.
func (r *renamer) run(ctx context.Context, g *group) error {
	if len(g.leaves) == 0 {
		return nil
	}
	names := slices.Concat([]string{r.from.Streams()}, g.names, g.locks)
	args := []any{store.MarkField, r.st.mark.Encode(), len(g.leaves), fence}
	for i, leaves := range g.leaves {
		args = append(args, leaves)
		if leaves == leaveFence || leaves == leaveLog {
			r.fenced[g.names[2*i]] = true
		}
	}
	err := renameScript.Run(ctx, r.rdb, names, args...).Err()
	switch {
	case err == nil:
		return nil
	case redis.HasErrorPrefix(err, "OVER"):
		return errOver
	case redis.HasErrorPrefix(err, "HELD"):
		return fmt.Errorf("a worker holds %s: it was started meanwhile: stop it", strings.TrimPrefix(err.Error(), "HELD "))
	case redis.HasErrorPrefix(err, "BUSY "):
		return taken(strings.TrimPrefix(err.Error(), "BUSY "))
	}
	return fmt.Errorf("rename %s: %w", g.names[0], err)
}

// errOver stops a move that slept, or that goes on beside another one.
var errOver = errors.New("another process has ended this move meanwhile, or turned it back")

func taken(key string) error {
	return &Refusal{fmt.Sprintf("there is a key %s already, and another one that is to have this name: see what it is, and delete one of the two", key)}
}

// sweep renames what no metadata name: the IDs of sent records, and what removed processors left.
func (r *renamer) sweep(ctx context.Context) error {
	done := 0
	return scan(ctx, r.rdb, r.from, func(found []entry) error {
		for part := range slices.Chunk(found, atOnce) {
			var g group
			for _, e := range part {
				leaves, known := leaveNothing, e.Kind == "meta" || r.fenced[e.key]
				switch e.Kind {
				case "id":
					leaves = leaveID
					done++
				case "strm":
					leaves = leaveLog
				}
				if !known {
					g.add(e.key, r.to.Name(e.Part), leaves)
				}
			}
			if err := r.run(ctx, &g); err != nil {
				return err
			}
			r.report("IDs of what was sent once renamed", done, 0)
		}
		return nil
	})
}
