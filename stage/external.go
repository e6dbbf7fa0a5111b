package stage

import (
	"context"
	"errors"
	"fmt"

	"github.com/runnel-go/runnel"
)

// ErrConflict is returned for an entity that has another version than the caller named.
var ErrConflict = errors.New("the entity has another version")

// ErrNotFound is returned for an entity that is not there.
var ErrNotFound = errors.New("no such entity")

// An Entity is a value with its version. Versions of an entity grow, also when it is deleted and stored
// anew; they are not consecutive.
type Entity[T any] struct {
	Value   T
	Version int64
}

// A Store has the entities of a set outside of Redis, for NewExternal. Its methods are called
// concurrently, and may be called again after an error or a crash. Versions are positive and grow.
type Store[T any] interface {
	// Load returns the entities that there are of these IDs, in any order.
	Load(ctx context.Context, ids []string) ([]Entity[T], error)
	// Save stores e.Value if the stored entity has the version e.Version, and returns its new version;
	// else ErrConflict, or ErrNotFound.
	Save(ctx context.Context, e Entity[T]) (version int64, err error)
	// Delete deletes an entity if it has this version; else it returns ErrConflict or ErrNotFound.
	Delete(ctx context.Context, id string, version int64) error
}

// NewExternal declares a set whose entities are in a Store, for instance a database; Redis has only their
// visits. Code that changes an entity elsewhere calls Touch after its commit; what was forgotten, TouchAll
// repairs. A Func's change is stored, then its visit ends: a crash between the two calls the Func again,
// with what is stored then. Put, Save, Update and Get of the set use the Store. NewExternal panics as New
// does, and on a nil store.
func NewExternal[T any](app *runnel.App, name string, id func(T) string, store Store[T], opts *Options) *Set[T] {
	if store == nil {
		panic("runnel: app " + app.Name() + ": set " + name + ": nil store")
	}
	return newSet(app, name, id, &typedStore[T]{store, id}, opts)
}

// external is a Store without its type.
type external interface {
	// load returns entities by ID. Its error is a *loadError.
	load(ctx context.Context, ids []string) (map[string]entity, error)
	// change saves or deletes an entity over a version.
	change(ctx context.Context, id string, value any, version int64, remove bool) (int64, error)
}

// A loadError is an error of a Store, or of Redis, that has not loaded an entity.
type loadError struct{ error }

// Unwrap returns the error.
func (e *loadError) Unwrap() error { return e.error }

type typedStore[T any] struct {
	store Store[T]
	id    func(T) string
}

func (x *typedStore[T]) load(ctx context.Context, ids []string) (found map[string]entity, err error) {
	defer func() {
		if err != nil {
			err = &loadError{fmt.Errorf("store: %w", err)}
		}
	}()
	defer recoverInto(&err)
	entities, err := x.store.Load(ctx, ids)
	if err != nil {
		return nil, err
	}
	found = map[string]entity{}
	for _, e := range entities {
		found[x.id(e.Value)] = entity{version: e.Version, value: e.Value}
	}
	return found, nil
}

func (x *typedStore[T]) change(ctx context.Context, id string, value any, version int64, remove bool) (_ int64, err error) {
	defer recoverInto(&err)
	if remove {
		return 0, x.store.Delete(ctx, id, version)
	}
	stored, err := x.store.Save(ctx, Entity[T]{value.(T), version})
	if err != nil && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("store: %w", err)
	}
	return stored, err
}
