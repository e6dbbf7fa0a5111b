package runnel

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/store"
)

// A declaration is what an app says of one of its streams, whatever the type of its
// records, and what becomes of that in Redis: the stream's metadata.
type declaration struct {
	app  *App
	name string
	opts StreamOptions // as given

	mu        sync.Mutex
	tables    []*table        // of the stream; not changed after registration
	atomic    []string        // its Atomic processors; not changed after registration
	kind      string          // of an extension, "" for none
	parts     func() []string // of kind
	effective *StreamOptions  // after inheritance, nil until first use
	ensured   appview.Sender  // where the metadata was written or checked
	checked   bool            // it says the same; see readable
	warned    sync.Once
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

// extended makes the stream one of an extension; see extension.Declare.
func (d *declaration) extended(kind string, parts func() []string) {
	d.app.register(func() {
		d.mu.Lock()
		d.kind, d.parts = kind, parts
		d.mu.Unlock()
		d.app.uses(kind)
	})
}

// kindOf returns the stream's kind, and its parts once registration is over.
func (d *declaration) kindOf() (kind string, parts []string) {
	d.mu.Lock()
	kind, ask := d.kind, d.parts
	d.mu.Unlock()
	if ask != nil && d.app.isStarted() {
		parts = ask()
	}
	return kind, parts
}

// meta is the stream's metadata as this process has it.
func (d *declaration) meta(processors []string) (store.Meta, error) {
	o, err := d.settings()
	if err != nil {
		return store.Meta{}, err
	}
	app, err := d.app.settings()
	if err != nil {
		return store.Meta{}, err
	}
	kind, parts := d.kindOf()
	var atomic []string
	if len(processors) > 0 { // a worker
		atomic = d.atomic
	}
	return store.Meta{
		Partitions: o.Partitions, MaxLen: o.MaxLen, Overflow: o.Overflow.String(), DedupWindow: o.DedupWindow.Milliseconds(),
		Codec: o.Codec.Name(), Partitioner: o.Partitioner.Name, KeyField: o.KeyField, Layout: string(app.KeyLayout), Processors: processors,
		Kind: kind, Parts: parts, Tables: d.tablesMeta(), Atomic: atomic,
	}, nil
}

// check returns why a worker with these processors may not start; it writes nothing.
func (d *declaration) check(ctx context.Context, in *store.Client, processors []string) error {
	m, err := d.meta(processors)
	if err != nil {
		return err
	}
	return in.CheckMeta(ctx, d.name, m)
}

// readable checks the stream's metadata, if there is any, for a process that only reads: it writes nothing.
func (d *declaration) readable(ctx context.Context, in *store.Client) error {
	d.mu.Lock()
	known := d.checked || d.ensured != nil
	d.mu.Unlock()
	if known {
		return nil
	}
	if err := d.check(ctx, in, nil); err != nil {
		return err
	}
	_, there, err := in.LoadMeta(ctx, d.name)
	d.mu.Lock()
	d.checked = there
	d.mu.Unlock()
	return err
}

// ensure writes the stream's metadata, or checks that it says the same, and returns it.
func (d *declaration) ensure(ctx context.Context, in appview.Sender, processors []string) (store.Meta, error) {
	m, err := d.meta(processors)
	if err != nil {
		return m, err
	}
	if m, err = in.EnsureMeta(ctx, d.name, m); err != nil {
		return m, err
	}
	d.mu.Lock()
	d.ensured = in
	d.mu.Unlock()
	return m, nil
}

// warn logs which tables processors of this program have had elsewhere, and do not have here: what this worker handles does not
// count in them. It does so once in a process.
func (d *declaration) warn(logger *slog.Logger, meta store.Meta, processors []string) {
	d.warned.Do(func() {
		for _, name := range slices.Sorted(maps.Keys(meta.Tables)) {
			p := meta.Tables[name].Processor
			declared := slices.ContainsFunc(d.tables, func(t *table) bool { return t.name == name && t.processor == p })
			if slices.Contains(processors, p) && !declared {
				logger.Warn("table left out", "stream", d.name, "processor", p, "table", name, "help", help.TableLeftOut)
			}
		}
	})
}

// sender returns where records of the stream go, after the first call has ensured its
// metadata there. A stream of an extension takes none.
func (d *declaration) sender(ctx context.Context) (appview.Sender, error) {
	if kind, _ := d.kindOf(); kind != "" {
		return nil, store.Meta{Kind: kind}.CheckSend(d.name)
	}
	return d.ready(ctx)
}

// ready ensures the stream's metadata where its records go, at the first call, and returns that place.
func (d *declaration) ready(ctx context.Context) (appview.Sender, error) {
	to, err := d.app.sender()
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", d.name, err)
	}
	d.mu.Lock()
	known := d.ensured == to
	d.mu.Unlock()
	if known {
		return to, nil
	}
	_, err = d.ensure(ctx, to, nil)
	return to, err
}
