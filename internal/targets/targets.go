// Package targets finds what parked and dead act on: a processor, whose parked events and dead letters it gives
// the form that extensions give theirs, or a part of an extension.
package targets

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/store"
)

// Find returns the target OWNER/PART: a processor of the stream, or else a part of an extension, or else a
// processor that is not there (any more), whose stores say so. It reads nothing of an app that has no extension.
func Find(ctx context.Context, app *runnel.App, c *store.Client, a *admin.Client, owner, part string) (*extension.Target, error) {
	core := &extension.Target{
		Owner: owner, Part: part, Processor: part, Noun: "event",
		Parked: list[admin.ParkedEvent]{a.Parked(owner, part), a.Parked(owner, part).List, parkedOf},
		Dead:   letters{a.DeadLetters(owner, part)},
	}
	if len(extension.All(app)) == 0 {
		return core, nil
	}
	m, _, err := c.LoadMeta(ctx, owner)
	if err != nil || slices.Contains(m.Processors, part) {
		return core, err
	}
	t, err := extension.FindTarget(ctx, app, c, owner, part)
	if errors.As(err, new(*extension.NotTargetError)) && !store.InternalKind(m.Kind) {
		return core, nil // it may have left dead letters
	}
	if t == nil {
		t = core
	}
	return t, err
}

// OfCore reports whether a target is a processor.
func OfCore(t *extension.Target) bool { return t.Part == t.Processor }

// A changer changes what it has listed.
type changer[T any] interface {
	Retry(context.Context, []T) ([]T, error)
	Drop(context.Context, []T) ([]T, error)
}

// A list is a store of package admin.
type list[T any] struct {
	changer[T]
	list func(context.Context, *admin.Filter) ([]T, error)
	of   func(T) extension.Failure
}

func (l list[T]) List(ctx context.Context, f extension.Filter) iter.Seq2[extension.Failure, error] {
	return func(yield func(extension.Failure, error) bool) {
		all, err := l.list(ctx, &admin.Filter{Partitions: f.Partitions, Key: f.Key, ID: f.ID, Since: f.Since, Error: f.Error, Limit: f.Limit})
		if err != nil {
			yield(extension.Failure{}, err)
			return
		}
		for _, one := range all {
			if !yield(l.of(one), nil) {
				return
			}
		}
	}
}

func (l list[T]) Retry(ctx context.Context, of []extension.Failure) ([]extension.Failure, error) {
	return l.change(ctx, of, l.changer.Retry)
}

func (l list[T]) Drop(ctx context.Context, of []extension.Failure) ([]extension.Failure, error) {
	return l.change(ctx, of, l.changer.Drop)
}

func (l list[T]) change(ctx context.Context, of []extension.Failure, change func(context.Context, []T) ([]T, error)) ([]extension.Failure, error) {
	all := make([]T, len(of))
	for i, one := range of {
		all[i] = one.Own.(T)
	}
	changed, err := change(ctx, all)
	done := []extension.Failure{}
	for _, one := range changed {
		done = append(done, l.of(one))
	}
	return done, err
}

// letters lists dead letters with their fields where the filter asks for them.
type letters struct{ dead *admin.DeadLetters }

func (l letters) store(f extension.Filter) list[admin.DeadLetter] {
	read := l.dead.List
	if f.Fields {
		read = l.dead.Read
	}
	return list[admin.DeadLetter]{l.dead, read, letterOf}
}

func (l letters) List(ctx context.Context, f extension.Filter) iter.Seq2[extension.Failure, error] {
	return l.store(f).List(ctx, f)
}

func (l letters) Retry(ctx context.Context, of []extension.Failure) ([]extension.Failure, error) {
	return l.store(extension.Filter{}).Retry(ctx, of)
}

func (l letters) Drop(ctx context.Context, of []extension.Failure) ([]extension.Failure, error) {
	return l.store(extension.Filter{}).Drop(ctx, of)
}

func parkedOf(e admin.ParkedEvent) extension.Failure {
	return extension.Failure{
		Partition: e.Partition, ID: e.Event, Event: e.Event, Key: e.Key, State: e.State, Attempts: e.Attempts,
		At: e.At, In: e.In, First: e.First, Last: e.Last, Error: e.Error, Own: e,
	}
}

func letterOf(d admin.DeadLetter) extension.Failure {
	return extension.Failure{
		Partition: d.Partition, ID: d.ID, Event: d.Event, Key: d.Key, State: extension.Dead, Reason: d.Reason, Attempts: d.Attempts,
		First: d.First, Last: d.Last, Died: &d.Died, Error: d.Error, Epoch: d.Epoch, Fields: d.Fields, Own: d,
	}
}

// OfLetter returns a dead letter as a failure, nil for none.
func OfLetter(d *admin.DeadLetter) *extension.Failure {
	if d == nil {
		return nil
	}
	f := letterOf(*d)
	return &f
}

// Chosen collects what a store lists.
func Chosen(ctx context.Context, s extension.FailureStore, f extension.Filter) ([]extension.Failure, error) {
	all := []extension.Failure{}
	for one, err := range s.List(ctx, f) {
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}
