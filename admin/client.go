package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
)

// A Client acts on one app. Its methods, and those of the types it returns, are safe for concurrent
// use; they block until Redis has answered, and return its errors. No worker has to run.
type Client struct{ core }

// A core is the common part of a Client and the types that it returns.
type core struct {
	app      *appview.View
	of       *runnel.App // for its extensions
	progress func(what string, done, all int64)
}

// New returns a Client of app. It does no I/O; the connection is the app's.
func New(app *runnel.App) *Client { return &Client{core{app: appview.Of(app), of: app}} }

// WithProgress returns a Client whose long calls report their progress to fn: the current step, how
// much of it is done, and the total, 0 if unknown. fn runs often, in the goroutine of the call, and
// must return at once.
func (c *Client) WithProgress(fn func(what string, done, all int64)) *Client {
	return &Client{core{c.app, c.of, fn}}
}

func (c *core) tell(what string, done, all int) {
	if c.progress != nil {
		c.progress(what, int64(done), int64(all))
	}
}

// A NotFoundError is returned if the app has no such stream, or the stream no such processor.
type NotFoundError struct {
	App, Redis        string
	Stream, Processor string   // Processor is "" if there is no such stream
	There             []string // the existing streams or processors
}

// Error lists the existing names.
func (e *NotFoundError) Error() string {
	there := "it has none"
	if len(e.There) > 0 {
		there = "it has " + strings.Join(e.There, ", ")
	}
	if e.Processor != "" {
		return fmt.Sprintf("stream %s has no processor %q; %s; a processor is there once a worker has run it", e.Stream, e.Processor, there)
	}
	return fmt.Sprintf("app %s at %s has no stream %q; %s; a stream is there once its app has sent to it or run a worker", e.App, e.Redis, e.Stream, there)
}

// meta returns a stream's metadata, or an error that lists the existing streams.
func (c *core) meta(ctx context.Context, stream string) (*store.Client, store.Meta, error) {
	client, err := c.app.Client()
	if err != nil {
		return nil, store.Meta{}, err
	}
	m, ok, err := client.LoadMeta(ctx, stream)
	if err == nil && !ok {
		err = c.noStream(ctx, client, stream)
	}
	return client, m, err
}

// noStream returns the error for a stream without metadata, with a possible reason.
func (c *core) noStream(ctx context.Context, client *store.Client, stream string) error {
	// Without a number of partitions this writes nothing, and looks at the other layout of keys.
	_, err := client.EnsureMeta(ctx, stream, store.Meta{})
	var conflict *store.MetaConflictError
	switch {
	case !errors.As(err, &conflict):
	case conflict.Stored == string(runnel.LayoutStandalone) || conflict.Stored == string(runnel.LayoutCluster):
		return fmt.Errorf("%w: set RUNNEL_KEY_LAYOUT=%s", err, conflict.Stored)
	default: // the keys are being moved, or were
		return err
	}
	there, err := client.Streams(ctx)
	if err != nil {
		return err
	}
	return &NotFoundError{App: c.app.App, Redis: client.Addr(), Stream: stream, There: there}
}

// registered returns the metadata of a stream that has this processor.
func (c *core) registered(ctx context.Context, stream, processor string) (*store.Client, store.Meta, error) {
	client, m, err := c.meta(ctx, stream)
	if err == nil && !slices.Contains(m.Processors, processor) {
		err = c.noProcessor(client, stream, processor, m)
	}
	return client, m, err
}

func (c *core) noProcessor(client *store.Client, stream, processor string, m store.Meta) error {
	return &NotFoundError{App: c.app.App, Redis: client.Addr(), Stream: stream, Processor: processor, There: m.Processors}
}

// A PartitionError is returned if a stream has no such partition.
type PartitionError struct {
	Stream                string
	Partition, Partitions int
}

// Error names the number of partitions.
func (e *PartitionError) Error() string {
	return fmt.Sprintf("stream %s has no partition %d: it has %d, from 0 on", e.Stream, e.Partition, e.Partitions)
}

// chosen returns the named partitions of a stream, or all if none is named.
func chosen(stream string, m store.Meta, named []int) ([]int, error) {
	if len(named) == 0 {
		return m.Numbers(), nil
	}
	for _, n := range named {
		if n < 0 || n >= m.Partitions {
			return nil, &PartitionError{stream, n, m.Partitions}
		}
	}
	return named, nil
}

// A Stream is the declaration of a stream.
type Stream struct {
	Name        string
	Partitions  int
	MaxLen      int64 // maximum of entries in a partition
	Codec       string
	Partitioner string
	KeyField    string // JSON field of the key, "" for none
	Layout      string // how its keys are named
	Processors  []string
	Kind        string // "set", "schedule", "bus" or "topic", whose extension sends to it; "" for an ordinary stream
}

// Streams returns the streams of the app, by name.
func (c *Client) Streams(ctx context.Context) ([]Stream, error) {
	client, err := c.app.Client()
	if err != nil {
		return nil, err
	}
	names, err := client.Streams(ctx)
	if err != nil {
		return nil, err
	}
	var out []Stream
	for _, name := range names {
		m, ok, err := client.LoadMeta(ctx, name)
		if err != nil {
			return nil, err
		}
		if ok { // not deleted meanwhile
			out = append(out, streamOf(name, m))
		}
	}
	return out, nil
}

// Stream returns one stream of the app, or a *NotFoundError.
func (c *Client) Stream(ctx context.Context, name string) (Stream, error) {
	_, m, err := c.meta(ctx, name)
	return streamOf(name, m), err
}

func streamOf(name string, m store.Meta) Stream {
	return Stream{name, m.Partitions, m.MaxLen, m.Codec, m.Partitioner, m.KeyField, m.Layout, append([]string{}, m.Processors...), m.Kind}
}

// occupied returns the partitions that are not empty, and the unreadable ones, whose later read
// returns the error.
func occupied(ctx context.Context, c *store.Client, stream, processor string, partitions []int, has func(store.View) bool) ([]int, error) {
	views, err := c.Views(ctx, c.Partitions(stream, processor, partitions))
	if err != nil {
		return nil, err
	}
	var out []int
	for i, v := range views {
		if v.Err != nil || has(v) {
			out = append(out, partitions[i])
		}
	}
	return out, nil
}

func (c *core) processorOf(ctx context.Context, stream, processor string) (*store.Client, *inspect.ProcessorState, error) {
	client, _, err := c.registered(ctx, stream, processor)
	if err != nil {
		return nil, nil, err
	}
	p, err := inspect.Processor(ctx, client, stream, processor, 0)
	return client, p, err
}
