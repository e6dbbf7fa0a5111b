package runnel

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// Stream is a typed, partitioned stream; records with the same key stay in order. Its
// methods are safe for concurrent use, except Process.
type Stream[T any] struct {
	app  *App
	name string
	key  func(T) string
	opts StreamOptions // as given
	sent appview.SendCounters

	mu        sync.Mutex
	effective *StreamOptions // after inheritance, nil until first use
	ensured   bool           // the metadata was written or checked
}

// NewStream declares a stream of T. key returns the key of a record; it must be a
// function of the record alone and may be called concurrently. A nil opts is all
// defaults. NewStream does no I/O. It panics if the name is taken or has other characters
// than letters, digits, "_", "-" and ".", if key is nil, an option is out of range, or
// the codec rejects T, such as a struct without exported fields, and after Run.
func NewStream[T any](app *App, name string, key func(T) string, opts *StreamOptions) *Stream[T] {
	where := "runnel: app " + app.name + ": NewStream " + name + ": "
	mustName(where, name, true)
	if key == nil {
		panic(where + "nil key function")
	}
	s := &Stream[T]{app: app, name: name, key: key}
	if opts != nil {
		s.opts = *opts
	}
	if err := s.opts.check(); err != nil {
		panic(where + err.Error())
	}
	c := newEnvironment().stream(s.opts, app.opts.Stream).Codec
	if checker, ok := c.(codec.TypeChecker); ok {
		if err := checker.Check(reflect.TypeFor[T]()); err != nil {
			panic(where + err.Error())
		}
	}
	app.register(func() {
		if app.streams[name] != nil {
			panic(where + "the app has a stream of that name already")
		}
		app.streams[name] = s
	})
	return s
}

// Name returns the name of the stream.
func (s *Stream[T]) Name() string { return s.name }

// App returns the app that the stream belongs to.
func (s *Stream[T]) App() *App { return s.app }

// settings are the stream's options after inheritance, environment and
// defaults, read once.
func (s *Stream[T]) settings() (*StreamOptions, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.effective == nil {
		env := newEnvironment()
		o := env.stream(s.opts, s.app.opts.Stream)
		if err := env.err(); err != nil {
			return nil, fmt.Errorf("stream %s: %w", s.name, err)
		}
		s.effective = &o
	}
	return s.effective, nil
}

func (s *Stream[T]) meta(o *StreamOptions, processors []string) (store.Meta, error) {
	app, err := s.app.settings()
	if err != nil {
		return store.Meta{}, err
	}
	return store.Meta{
		Partitions: o.Partitions, MaxLen: o.MaxLen, Overflow: o.Overflow.String(), DedupWindow: o.DedupWindow.Milliseconds(),
		Codec: o.Codec.Name(), Partitioner: o.Partitioner.Name, KeyField: o.KeyField, Layout: string(app.KeyLayout), Processors: processors,
	}, nil
}

// ensure writes the stream's metadata or checks that the stored metadata matches.
func (s *Stream[T]) ensure(ctx context.Context, processors []string) error {
	m, client, err := s.own(processors)
	if err != nil {
		return err
	}
	if _, err := client.EnsureMeta(ctx, s.name, m); err != nil {
		return err
	}
	s.mu.Lock()
	s.ensured = true
	s.mu.Unlock()
	return nil
}

// check returns an error if a worker with these processors may not start; it writes
// nothing.
func (s *Stream[T]) check(ctx context.Context, processors []string) error {
	m, client, err := s.own(processors)
	if err != nil {
		return err
	}
	return client.CheckMeta(ctx, s.name, m)
}

// own returns the metadata as this process has it, and the client that compares it.
func (s *Stream[T]) own(processors []string) (store.Meta, *store.Client, error) {
	o, err := s.settings()
	if err != nil {
		return store.Meta{}, nil, err
	}
	m, err := s.meta(o, processors)
	if err != nil {
		return store.Meta{}, nil, err
	}
	client, err := s.app.redis()
	return m, client, err
}

// ensureOnce is ensure for the first Send.
func (s *Stream[T]) ensureOnce(ctx context.Context) error {
	s.mu.Lock()
	done := s.ensured
	s.mu.Unlock()
	if done {
		return nil
	}
	return s.ensure(ctx, nil)
}

func (s *Stream[T]) keyOfEvent(e *Event) (string, error) {
	return s.keyWithin(e, s.effective.MaxRecord)
}

func (s *Stream[T]) keyWithin(e *Event, limit int64) (string, error) {
	var record T
	if _, err := s.decodeWithin(e, &record, limit); err != nil {
		return "", err
	}
	return s.key(record), nil
}

func (s *Stream[T]) describe() (*appview.Stream, error) {
	o, err := s.settings()
	if err != nil {
		return nil, err
	}
	m, err := s.meta(o, nil)
	if err != nil {
		return nil, err
	}
	return &appview.Stream{
		Name: s.name, Meta: m, Partition: o.Partitioner.Func,
		Encode: func(record any) ([]string, int, error) {
			r, ok := record.(T)
			if !ok {
				return nil, 0, fmt.Errorf("stream %s: a record is %T, want %s", s.name, record, reflect.TypeFor[T]())
			}
			return s.encode(o, Outgoing[T]{Record: r}, nil)
		},
		Sample: func() ([]byte, error) {
			var record T
			return json.Marshal(record)
		},
		MaxRecord: o.MaxRecord,
		Decode: func(entry redisconn.Entry, limit int64) (any, error) {
			var record T
			e := &Event{Stream: s.name}
			newEvent(e, entry)
			_, err := s.decodeWithin(e, &record, limit)
			return record, err
		},
		Key: func(entry redisconn.Entry, limit int64) (string, bool) {
			return (&eventSource{key: func(e *Event) (string, error) { return s.keyWithin(e, limit) }}).keyOf(entry)
		},
		Sent:     &s.sent,
		SendJSON: s.sendJSON,
		CheckJSON: func(r appview.JSONRecord) error {
			_, err := s.outgoing(r)
			return err
		},
	}, nil
}
