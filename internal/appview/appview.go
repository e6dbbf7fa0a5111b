// Package appview is what an app has declared, and how to reach it, for the packages above the root
// package: command line, dashboard, metrics and tests.
package appview

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/retryqueue"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/worker"
)

// A Stream is a declared stream without its type. The root package fills it in.
type Stream struct {
	Name string
	Meta store.Meta

	// Partition returns the partition of a key.
	Partition func(key string, partitions int) int
	// Ensure writes or checks the stream's metadata, before its first use.
	Ensure func(ctx context.Context) error
	// Encode returns the fields of a record's entry and its partition. record must be of the
	// stream's type.
	Encode func(record any) (fields []string, partition int, err error)
	// Sample returns the JSON of a zero record.
	Sample func() ([]byte, error)
	// MaxRecord is the maximum size of a record in bytes.
	MaxRecord int64
	// Decode is the inverse of Encode, of records of at most limit bytes.
	Decode func(entry redisconn.Entry, limit int64) (record any, err error)
	// Key returns the key of an entry, or false if it cannot be decoded within limit.
	Key func(entry redisconn.Entry, limit int64) (key string, ok bool)
	// SendJSON strictly decodes each value into a record and sends them in order. The results are
	// by index; without a Key, the key function gives it.
	SendJSON func(ctx context.Context, records []JSONRecord) []JSONSent
	Sent     *SendCounters
	// CheckJSON returns why SendJSON would refuse a record.
	CheckJSON func(JSONRecord) error

	// Rows decode the rows of its tables, by their names.
	Rows map[string]func(data string) (row any, err error)
}

// SendCounters count the records of one stream that a process sent. They are safe for concurrent
// use.
type SendCounters struct {
	Sent       atomic.Int64 // appended, or delayed
	Duplicates atomic.Int64 // sent before, under the same ID
	Refused    atomic.Int64 // not sent: the stream is full, or Redis did not take them
	Unknown    atomic.Int64 // sent or not
}

type JSONRecord struct {
	JSON []byte
	Key  *string // nil: by the key function
	ID   string  // deduplicates; "" for none

	At    time.Time     // when it is due, zero for now or After
	After time.Duration // the same from now
}

// JSONSent is the result of a JSONRecord.
type JSONSent struct {
	store.Sent
	Refused bool // not a record of the stream: do not retry
}

// A View is what an app has declared, and how to reach it. Its functions are safe for concurrent
// use.
type View struct {
	App        string
	Streams    func() ([]*Stream, error)           // sorted by name; settings are read at the first call
	Processors func() ([]*worker.Processor, error) // in order of registration
	Client     func() (*store.Client, error)
	Settings   func() (*Settings, error) // read at the first call, and again after Override

	// Inherited returns what processors inherit.
	Inherited func() (*Inherited, error)

	// Stats returns those of the running worker, nil for none.
	Stats func() *worker.Stats
	// KeepLatencies makes the next Run measure latencies.
	KeepLatencies func()

	// Override applies settings from flags, before first use.
	Override func(Overrides)
	// Intercept sends the app's records to a Sender until end is called. It blocks while another
	// one does.
	Intercept func(Sender) (end func())
}

// Own returns what an extension uses of a stream that it has declared. It does no I/O.
func (v *View) Own(stream string) (s *Stream, c *store.Client, in *Inherited, err error) {
	all, err := v.Streams()
	if err == nil {
		c, err = v.Client()
	}
	if err == nil {
		in, err = v.Inherited()
	}
	for _, one := range all {
		if one.Name == stream {
			s = one
		}
	}
	return s, c, in, err
}

// Overrides are settings from flags; zero values change nothing.
type Overrides struct {
	RedisURL            string
	Inside              bool // RedisURL is of a server inside this process
	LogLevel, LogFormat string
	Logger              *slog.Logger
}

// Settings are what an app uses, after flags, code, environment and defaults.
type Settings struct {
	LogLevel, LogFormat string
	Logger              *slog.Logger // nil: none was given
}

// Inherited is what processors inherit, for functions of extensions.
type Inherited struct {
	Timeout time.Duration // 0: none
	Grace   time.Duration // also of tasks, at shutdown
	// Retry builds own, a *runnel.Retry; if that is nil the one that processors inherit; without any,
	// one with so many attempts. Its error is a mistake in own.
	Retry func(own any, attempts int) (*retryqueue.Retry, error)
}

// A Sender takes the records of an app; see the methods of store.Client.
type Sender interface {
	EnsureMeta(ctx context.Context, stream string, m store.Meta) (store.Meta, error)
	Append(ctx context.Context, appends []store.Append) []store.Appended
	Cancel(ctx context.Context, stream string, partition int, id string) (bool, error)
	Reschedule(ctx context.Context, stream string, partition int, id string, at time.Time) (bool, error)
}

// Of returns the View of a *runnel.App. The root package sets it, which keeps the View out of the
// exported API.
var Of func(app any) *View

// TableOf returns the app of a runnel.State, the name of its stream, and its own. The root package sets it.
var TableOf func(table any) (app any, stream, name string)
