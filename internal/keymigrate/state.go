package keymigrate

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/store"
)

//go:embed lua/mark.lua
var markSource string

//go:embed lua/finish.lua
var finishSource string

var (
	markScript   = redis.NewScript(markSource)
	finishScript = redis.NewScript(finishSource)
)

// A source is the server that has the keys, with their old and their new names.
type source struct {
	client   *store.Client
	rdb      redis.UniversalClient // of client
	from, to keys.Keys
}

// A state is the app's streams, and the mark of their move.
type state struct {
	mark    store.Mark // the zero one for none
	streams []stream   // by name
	bare    []string   // listed under the old names, without metadata
}

// A stream is one with metadata, under either name.
type stream struct {
	name   string
	layout string // of that name
	stored string
	meta   store.Meta
}

func (s *state) has(k keys.Keys) bool {
	return slices.ContainsFunc(s.streams, func(one stream) bool { return one.layout == k.Layout })
}

// read reads the state.
func (so *source) read(ctx context.Context) (*state, error) {
	st := &state{}
	listed := map[string]bool{}
	var names []string
	for _, k := range []keys.Keys{so.from, so.to} {
		fields, err := so.rdb.HGetAll(ctx, k.Streams()).Result()
		if err != nil {
			return nil, fmt.Errorf("list its streams (%s): %w", k.Streams(), err)
		}
		mark, err := store.ParseMark(fields[store.MarkField])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.Streams(), err)
		}
		if st.mark.State == "" || mark.State == store.MarkMoving {
			st.mark = mark
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if !strings.HasPrefix(name, "@") {
				names = append(names, name)
				listed[name] = listed[name] || k == so.from
			}
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		one, err := so.readStream(ctx, name)
		if err != nil {
			return nil, err
		}
		switch {
		case one != nil:
			st.streams = append(st.streams, *one)
		case listed[name]:
			st.bare = append(st.bare, name)
		}
	}
	return st, nil
}

// readStream reads the metadata of a stream, nil if it has none.
func (so *source) readStream(ctx context.Context, name string) (*stream, error) {
	var found *stream
	for _, k := range []keys.Keys{so.from, so.to} {
		stored, err := so.rdb.Get(ctx, k.Meta(name)).Result()
		if err == redis.Nil {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("stream %s: metadata: %w", name, err)
		}
		if found != nil {
			return nil, fmt.Errorf("stream %s is there under both names (%s, %s): remove one of the two", name, so.from.Meta(name), so.to.Meta(name))
		}
		meta, _, err := so.client.KnowMeta(name, []byte(stored))
		if err != nil {
			return nil, err
		}
		found = &stream{name, k.Layout, stored, meta}
	}
	return found, nil
}

// as returns the metadata with another layout.
func (s *stream) as(layout string) string {
	meta := s.meta
	meta.Layout = layout
	data, _ := json.Marshal(meta) // of strings and numbers
	return string(data)
}

// mark has every process refused from now on.
func (m *Mover) mark(ctx context.Context) error {
	for {
		mark := store.Mark{
			State: store.MarkMoving, ID: m.st.mark.ID, To: m.To(), Target: m.Target(), At: time.Now().UnixMilli(),
		}
		if old := m.st.mark; old.State == store.MarkMoving {
			mark.At = old.At
		} else {
			mark.ID = fmt.Sprintf("%016x", rand.Uint64())
		}
		names, args := []string{m.source.from.Streams(), m.source.to.Streams()}, []any{store.MarkField, mark.Encode()}
		for _, s := range m.st.streams {
			names, args = append(names, keys.Keys{App: m.o.App, Layout: s.layout}.Meta(s.name)), append(args, s.stored, s.as(mark.Layout()))
		}
		n, err := markScript.Run(ctx, m.source.rdb, names, args...).Int()
		if err != nil {
			return fmt.Errorf("mark it as being moved: %w", err)
		}
		// Read again in either case: what is there now is what counts.
		if m.st, err = m.source.read(ctx); err != nil || n == 1 {
			return err
		}
	}
}

// finish puts the streams under the new names, and reports false if there is another one meanwhile.
func (m *Mover) finish(ctx context.Context) (bool, error) {
	left := store.Mark{State: store.MarkMoved, ID: m.st.mark.ID, To: m.To(), Target: m.Target(), At: m.st.mark.At}
	here := ""
	if m.target != nil {
		if err := m.target.arrive(ctx, m.st); err != nil {
			return false, err
		}
		here = left.Encode()
	}
	names, args := []string{m.source.from.Streams(), m.source.to.Streams()}, []any{store.MarkField, m.st.mark.Encode(), left.Encode(), here}
	for _, s := range m.st.streams {
		names, args = append(names, m.source.from.Meta(s.name), m.source.to.Meta(s.name)), append(args, s.name, s.as(left.Layout()))
	}
	for _, name := range m.st.bare {
		names, args = append(names, m.source.from.Meta(name), m.source.to.Meta(name)), append(args, name, "")
	}
	n, err := finishScript.Run(ctx, m.source.rdb, names, args...).Int()
	if redis.HasErrorPrefix(err, "OVER") {
		return false, errOver
	}
	if err != nil {
		return false, fmt.Errorf("write the metadata under the new names: %w", err)
	}
	return n == 1, nil
}
