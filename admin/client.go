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

// A Client acts on one app. Its methods, and those of what it returns, may be called
// concurrently, by any program of the app; they block until Redis has answered, and return
// its errors. No worker has to run.
type Client struct{ core }

// A core is what a Client and what it returns share.
type core struct {
	app      *appview.View
	progress func(what string, done, all int64)
}

// New returns a Client of app. It does no I/O; the connection is the app's.
func New(app *runnel.App) *Client { return &Client{core{app: appview.Of(app)}} }

// WithProgress returns a Client whose calls that may take long tell fn what they do, how much
// of it is done, and of how much, 0 where that is not known. fn is called by the goroutine of
// the call, often, and must return at once.
func (c *Client) WithProgress(fn func(what string, done, all int64)) *Client {
	return &Client{core{c.app, fn}}
}

func (c *core) tell(what string, done, all int) {
	if c.progress != nil {
		c.progress(what, int64(done), int64(all))
	}
}

// A NotFoundError says that an app has no such stream, or a stream no such processor.
type NotFoundError struct {
	App, Redis        string
	Stream, Processor string   // Processor is "" where there is no such stream
	There             []string // the streams, or the processors, that there are
}

// Error names what there is.
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

// meta is a stream's metadata, or an error that says what there is.
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

// noStream says that a stream has no metadata, and why that may be.
func (c *core) noStream(ctx context.Context, client *store.Client, stream string) error {
	// This writes nothing without a number of partitions, and looks at the other
	// layout of keys.
	_, err := client.EnsureMeta(ctx, stream, store.Meta{})
	var conflict *store.MetaConflictError
	switch {
	case !errors.As(err, &conflict):
	case conflict.Stored == string(runnel.LayoutStandalone) || conflict.Stored == string(runnel.LayoutCluster):
		return fmt.Errorf("%w: set RUNNEL_KEY_LAYOUT=%s", err, conflict.Stored)
	default: // they are being moved, or were
		return err
	}
	there, err := client.Streams(ctx)
	if err != nil {
		return err
	}
	return &NotFoundError{App: c.app.App, Redis: client.Addr(), Stream: stream, There: there}
}

// registered is the metadata of a stream that has this processor.
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

// A PartitionError says that a stream has no such partition.
type PartitionError struct {
	Stream                string
	Partition, Partitions int
}

// Error tells how many there are.
func (e *PartitionError) Error() string {
	return fmt.Sprintf("stream %s has no partition %d: it has %d, from 0 on", e.Stream, e.Partition, e.Partitions)
}

// chosen are the partitions of a stream that were named, or all.
func chosen(stream string, m store.Meta, named []int) ([]int, error) {
	if len(named) == 0 {
		return allOf(m.Partitions), nil
	}
	for _, n := range named {
		if n < 0 || n >= m.Partitions {
			return nil, &PartitionError{stream, n, m.Partitions}
		}
	}
	return named, nil
}

func allOf(partitions int) []int {
	all := make([]int, partitions)
	for n := range all {
		all[n] = n
	}
	return all
}

// A Stream is how a stream is declared.
type Stream struct {
	Name        string
	Partitions  int
	MaxLen      int64 // the most entries that a partition may have
	Codec       string
	Partitioner string
	KeyField    string // JSON field of the key, "" for none
	Layout      string // how its keys are named
	Processors  []string
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

// Stream returns one stream of the app; a *NotFoundError says that there is none.
func (c *Client) Stream(ctx context.Context, name string) (Stream, error) {
	_, m, err := c.meta(ctx, name)
	return streamOf(name, m), err
}

func streamOf(name string, m store.Meta) Stream {
	return Stream{name, m.Partitions, m.MaxLen, m.Codec, m.Partitioner, m.KeyField, m.Layout, append([]string{}, m.Processors...)}
}

// occupied are those of the partitions that have something, and those that cannot be
// looked at: reading them tells why.
func occupied(ctx context.Context, c *store.Client, stream, processor string, partitions []int, has func(store.View) bool) ([]int, error) {
	places := make([]store.Partition, len(partitions))
	for i, n := range partitions {
		places[i] = c.Partition(stream, processor, n)
	}
	views, err := c.Views(ctx, places)
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

// processorOf looks at a processor that is registered.
func (c *core) processorOf(ctx context.Context, stream, processor string) (*store.Client, *inspect.ProcessorState, error) {
	client, _, err := c.registered(ctx, stream, processor)
	if err != nil {
		return nil, nil, err
	}
	p, err := inspect.Processor(ctx, client, stream, processor, 0)
	return client, p, err
}
