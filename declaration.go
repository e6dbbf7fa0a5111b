package runnel

import (
	"context"
	"fmt"
	"sync"

	"github.com/runnel-go/runnel/internal/store"
)

// A declaration is what an app says of one of its streams, whatever the type of its
// records, and what becomes of that in Redis: the stream's metadata.
type declaration struct {
	app  *App
	name string
	opts StreamOptions // as given

	mu        sync.Mutex
	effective *StreamOptions // after inheritance, nil until first use
	ensured   bool           // the metadata was written or checked
}

// settings are the stream's options after inheritance, environment and
// defaults, read once.
func (d *declaration) settings() (*StreamOptions, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.effective == nil {
		env := newEnvironment()
		o := env.stream(d.opts, d.app.opts.Stream)
		if err := env.err(); err != nil {
			return nil, fmt.Errorf("stream %s: %w", d.name, err)
		}
		d.effective = &o
	}
	return d.effective, nil
}

// meta is the stream's metadata as this process has it.
func (d *declaration) meta(o *StreamOptions, processors []string) (store.Meta, error) {
	app, err := d.app.settings()
	if err != nil {
		return store.Meta{}, err
	}
	return store.Meta{
		Partitions: o.Partitions, MaxLen: o.MaxLen, Overflow: o.Overflow.String(), DedupWindow: o.DedupWindow.Milliseconds(),
		Codec: o.Codec.Name(), Partitioner: o.Partitioner.Name, KeyField: o.KeyField, Layout: string(app.KeyLayout), Processors: processors,
	}, nil
}

// ensure writes the stream's metadata or checks that it says the same.
func (d *declaration) ensure(ctx context.Context, processors []string) error {
	m, client, err := d.own(processors)
	if err != nil {
		return err
	}
	if _, err := client.EnsureMeta(ctx, d.name, m); err != nil {
		return err
	}
	d.mu.Lock()
	d.ensured = true
	d.mu.Unlock()
	return nil
}

// check returns why a worker with these processors may not start; it writes nothing.
func (d *declaration) check(ctx context.Context, processors []string) error {
	m, client, err := d.own(processors)
	if err != nil {
		return err
	}
	return client.CheckMeta(ctx, d.name, m)
}

// own is meta, and the client that compares it.
func (d *declaration) own(processors []string) (store.Meta, *store.Client, error) {
	o, err := d.settings()
	if err != nil {
		return store.Meta{}, nil, err
	}
	m, err := d.meta(o, processors)
	if err != nil {
		return store.Meta{}, nil, err
	}
	client, err := d.app.redis()
	return m, client, err
}

// ensureOnce is ensure for the first Send.
func (d *declaration) ensureOnce(ctx context.Context) error {
	d.mu.Lock()
	done := d.ensured
	d.mu.Unlock()
	if done {
		return nil
	}
	return d.ensure(ctx, nil)
}
