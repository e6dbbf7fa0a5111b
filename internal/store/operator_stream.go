package store

import (
	"context"
	"fmt"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// DropStream deletes the partitions of a stream, what else m says that they have, and, last, its
// metadata m. Forget its processors first. It may be repeated.
func (c Operator) DropStream(ctx context.Context, stream string, m Meta) error {
	err := c.onEach(ctx, stream, m.Partitions, "delete", func(n int) *redisconn.Call {
		unlink := []any{"UNLINK"}
		for _, kind := range keys.Kinds {
			unlink = appendTexts(unlink, m.keysOf(c.keys, kind, stream, n))
		}
		return redisconn.PlainCall(ctx, unlink...)
	})
	if err != nil {
		return err
	}
	if hop := keys.MustKind("hop"); ACL(c).uses(hop) { // else the user may have no right to it
		err := c.onEach(ctx, stream, m.Partitions, "delete", func(n int) *redisconn.Call {
			return redisconn.PlainCall(ctx, "UNLINK", hop.Key(c.keys, stream, "", "", n))
		})
		if err != nil {
			return err
		}
	}
	// In one step, or a stream that is created in between would not be listed.
	err = unlistScript.Run(ctx, c.Retrying, []string{c.keys.Meta(stream), c.keys.Streams()}, stream).Err()
	if err != nil {
		return MetaStore(c).metaError(stream, classify(err))
	}
	c.metas.forget(stream)
	return nil
}

// keysOf returns the keys of a kind in a partition that are dropped with the stream: none that Forget
// removes, or that expire.
func (m Meta) keysOf(k keys.Keys, kind keys.Kind, stream string, n int) (names []string) {
	if kind.ID || kind.Old || kind.Per == keys.PerOwner && kind.Extension == "" {
		return nil
	}
	for _, owner := range m.Owners(kind) {
		names = append(names, kind.Key(k, stream, owner, "", n))
	}
	return names
}

// An Extent is how much of something a stream has.
type Extent struct {
	What  string // a keys.Kind's
	Count int64
}

// Extents returns how much the extension of a stream has stored there, in the order of keys.Kinds, and
// leaves out what there is none of.
func (c Operator) Extents(ctx context.Context, stream string, m Meta) ([]Extent, error) {
	var names, whats []string
	var calls []*redisconn.Call
	for _, kind := range keys.Kinds {
		if kind.Extension == "" || !kind.Counted() || kind.Name == "out" { // which Forget wants to be empty
			continue
		}
		for n := range m.Partitions {
			for _, key := range m.keysOf(c.keys, kind, stream, n) {
				names, whats, calls = append(names, key), append(whats, kind.What), append(calls, redisconn.PlainCall(ctx, kind.Count, key))
			}
		}
	}
	redisconn.PipelineInTurns(ctx, c.Retrying, calls, partitionsPerTrip)
	var found []Extent
	for i, call := range calls {
		n, err := call.Reply.Int64()
		switch {
		case err != nil:
			return nil, fmt.Errorf("stream %s: count its %s: %w", stream, whats[i], c.NameWrongTypes(ctx, names[i:i+1], classify(err)))
		case n == 0:
		case len(found) > 0 && found[len(found)-1].What == whats[i]:
			found[len(found)-1].Count += n
		default:
			found = append(found, Extent{whats[i], n})
		}
	}
	return found, nil
}
