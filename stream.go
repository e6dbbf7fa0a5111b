package runnel

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// Stream is a typed, partitioned stream; records with the same key stay in order. Its
// methods are safe for concurrent use, except Process.
type Stream[T any] struct {
	*declaration
	encoding encoding[T]
	sent     appview.SendCounters
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
	d := &declaration{app: app, name: name}
	s := &Stream[T]{declaration: d, encoding: encoding[T]{d, key}}
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

func (s *Stream[T]) describe() (*appview.Stream, error) {
	o, err := s.settings()
	if err != nil {
		return nil, err
	}
	m, err := s.meta(nil)
	if err != nil {
		return nil, err
	}
	rows := map[string]func(string) (any, error){}
	for _, t := range s.tables {
		rows[t.name] = t.config.Decode
	}
	return &appview.Stream{
		Name: s.name, Meta: m, Partition: o.Partitioner.Func, Rows: rows,
		Ensure: func(ctx context.Context) error {
			_, err := s.ready(ctx)
			return err
		},
		Encode: func(record any) ([]string, int, error) {
			r, ok := record.(T)
			if !ok {
				return nil, 0, fmt.Errorf("stream %s: a record is %T, want %s", s.name, record, reflect.TypeFor[T]())
			}
			return s.encoding.encode(o, Outgoing[T]{Record: r}, nil)
		},
		Sample: func() ([]byte, error) {
			var record T
			return json.Marshal(record)
		},
		MaxRecord: o.MaxRecord,
		Decode: func(entry redisconn.Entry, limit int64) (any, error) {
			var record T
			e := &Event{Stream: s.name, ID: entry.ID, values: entry.Values}
			_, err := s.encoding.decodeWithin(e, &record, limit)
			return record, err
		},
		Key: func(entry redisconn.Entry, limit int64) (string, bool) {
			return (&eventSource{key: func(e *Event) (string, error) { return s.encoding.keyWithin(e, limit) }}).keyOf(entry)
		},
		Sent:     &s.sent,
		SendJSON: s.sendJSON,
		CheckJSON: func(r appview.JSONRecord) error {
			_, err := s.outgoing(r)
			return err
		},
	}, nil
}
