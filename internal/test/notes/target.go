package notes

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/store"
)

// targets returns board/pins, a part of the stream board that its processor keeper runs.
func targets(_ context.Context, c *store.Client, owner string) ([]extension.Target, error) {
	if owner != "" && owner != "board" {
		return nil, nil
	}
	return []extension.Target{{Owner: "board", Part: "pins", Processor: "keeper", Noun: "note", Dead: torn{c}}}, nil
}

// Tear makes a note of board/pins a dead one.
func Tear(ctx context.Context, c *store.Client, name, why string) error {
	return c.Redis().HSet(ctx, key(c, "dead"), name, why).Err()
}

// torn are the dead notes of board/pins, a hash of errors by name.
type torn struct{ c *store.Client }

func (d torn) List(ctx context.Context, f extension.Filter) iter.Seq2[extension.Failure, error] {
	return func(yield func(extension.Failure, error) bool) {
		all, err := d.c.Redis().HGetAll(ctx, key(d.c, "dead")).Result()
		if err != nil {
			yield(extension.Failure{}, err)
			return
		}
		n := 0
		for _, name := range slices.Sorted(maps.Keys(all)) {
			one := extension.Failure{ID: name, Key: name, State: extension.Dead, Reason: "torn", Attempts: 1, Error: all[name], Died: &time.Time{}}
			if f.Fields {
				one.Fields = map[string]any{"torn by": strings.Fields(all[name])[0]}
			}
			if !f.Chooses(&one) {
				continue
			}
			if n++; !yield(one, nil) || n == f.Limit {
				return
			}
		}
	}
}

// Retry pins the notes again.
func (d torn) Retry(ctx context.Context, of []extension.Failure) ([]extension.Failure, error) {
	done, err := d.Drop(ctx, of)
	for _, one := range done {
		if _, err := Add(ctx, d.c, one.ID, "mended"); err != nil {
			return done, err
		}
	}
	return done, err
}

// Drop throws the notes away.
func (d torn) Drop(ctx context.Context, of []extension.Failure) (done []extension.Failure, err error) {
	for _, one := range of {
		n, err := d.c.Redis().HDel(ctx, key(d.c, "dead"), one.ID).Result()
		if err != nil {
			return done, err
		}
		if n > 0 {
			done = append(done, one)
		}
	}
	return done, nil
}
