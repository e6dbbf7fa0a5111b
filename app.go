package runnel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/leader"
	"github.com/runnel-go/runnel/internal/logqueue"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/worker"
)

// An App names a set of streams, processors and tasks. Its methods are safe for
// concurrent use, except registration, which precedes Run.
type App struct {
	name string

	mu          sync.Mutex
	opts        Options // as given; flags replace fields
	streams     map[string]streamer
	processors  []*registration
	tasks       []*leader.Task
	kinds       []string // of streams of extensions, and store.Tables
	extensions  []*extension.Extension
	started     bool // registration is over
	closed      bool
	client      *store.Client  // nil until first use
	resolved    *Options       // nil until first use
	intercepted appview.Sender // nil: client
	latencies   bool           // latencies are measured
	inside      bool           // the server is one inside this process

	intercepting sync.Mutex                    // held while intercepted is set
	current      atomic.Pointer[worker.Worker] // of the Run that runs
	large        largeRecords
}

// streamer is a Stream without its type.
type streamer interface {
	describe() (*appview.Stream, error)
	check(ctx context.Context, in *store.Client, processors []string) error
	ensure(ctx context.Context, in appview.Sender, processors []string) (store.Meta, error)
	warn(logger *slog.Logger, meta store.Meta, processors []string)
}

// New returns an App. It does no I/O; a nil opts is all defaults. It panics if the name
// has other characters than letters, digits, "_" and "-", or an option is out of range.
func New(name string, opts *Options) *App {
	where := "runnel: New: "
	mustName(where, name, false)
	a := &App{name: name, streams: map[string]streamer{}}
	if opts != nil {
		a.opts = *opts
	}
	if err := a.opts.check(); err != nil {
		panic(where + err.Error())
	}
	return a
}

// Name returns the name of the app.
func (a *App) Name() string { return a.name }

// Run is a worker: it runs the processors of these names ("orders/printer" or
// "printer"; none = all) and the tasks until ctx ends, then drains: functions
// finish their iteration, acks are flushed, partitions are handed over.
//
// Run blocks. It returns nil after a clean drain, never ctx's own error. It returns an
// error if Redis is out of reach for 5 s at the start (later Run retries forever), if a
// processor halts, if the metadata of a stream differs, or if a function does not return
// within Grace and one more second after ctx ended (the error names its partitions). It
// returns ErrRunning if another Run of the app is running. It installs no signal
// handlers.
func (a *App) Run(ctx context.Context, processors ...string) error {
	w, logs, err := a.prepare(processors)
	if err != nil {
		return fmt.Errorf("app %s: %w", a.name, err)
	}
	defer logs.Close()
	defer a.current.Store(nil)
	if err := w.Run(ctx); err != nil {
		return fmt.Errorf("app %s: %w", a.name, err)
	}
	return nil
}

// prepare claims the app for one Run.
func (a *App) prepare(names []string) (*worker.Worker, *logqueue.Queue, error) {
	a.mu.Lock()
	a.started = true
	a.mu.Unlock()
	o, err := a.settings()
	if err != nil {
		return nil, nil, err
	}
	logger, err := o.logger()
	if err != nil {
		return nil, nil, err
	}
	logs := logqueue.New(logger.Handler(), slog.String("app", a.name), slog.String("worker", o.WorkerName))
	cfg, err := a.workerConfig(o, logs.Logger(), names)
	if err != nil {
		return nil, nil, err
	}
	w := worker.New(cfg)
	if !a.current.CompareAndSwap(nil, w) {
		return nil, nil, ErrRunning
	}
	return w, logs, nil
}

// workerConfig resolves the configuration of a worker.
func (a *App) workerConfig(o *Options, logger *slog.Logger, names []string) (*worker.Config, error) {
	client, err := a.redis()
	if err != nil {
		return nil, err
	}
	procs, err := a.build(logger)
	if err != nil {
		return nil, err
	}
	if procs, err = selectProcessors(procs, names); err != nil {
		return nil, err
	}
	a.mu.Lock()
	tasks, latencies := slices.Clone(a.tasks), a.latencies
	a.mu.Unlock()
	inherited := newEnvironment().processor(ProcessorOptions{}, a.opts.Processor)
	logger = logger.With("app", a.name, "worker", o.WorkerName)
	return &worker.Config{
		App: a.name, Worker: o.WorkerName, Client: client, Logger: logger,
		Processors: procs, Tasks: tasks, LeaderPoll: o.LeaderPoll, TimeZone: o.TimeZone, Grace: max(inherited.Grace, 0), Latencies: latencies,
		Ensure: func(ctx context.Context, step worker.Step) error { return a.ensure(ctx, logger, step) },
	}, nil
}

// ensure writes or checks the metadata of every stream; it writes none before all are
// checked. It logs what the processors leave out that it says of them.
func (a *App) ensure(ctx context.Context, logger *slog.Logger, step worker.Step) error {
	a.mu.Lock()
	streams := maps.Clone(a.streams)
	registered := map[string][]string{}
	for _, p := range a.processors {
		registered[p.stream] = append(registered[p.stream], p.name)
	}
	a.mu.Unlock()
	client, err := a.redis()
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range sortedKeys(streams) {
		errs = append(errs, step(ctx, func(ctx context.Context) error { return streams[name].check(ctx, client, registered[name]) }))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, name := range sortedKeys(streams) {
		err := step(ctx, func(ctx context.Context) error {
			meta, err := streams[name].ensure(ctx, client, registered[name])
			if err == nil {
				streams[name].warn(logger, meta, registered[name])
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Ready returns nil while the app runs, owns every partition that it was assigned, and
// can read them. Otherwise it returns an error that names what is missing, with
// ErrNotReady in its chain. It does not block.
func (a *App) Ready() error {
	w := a.current.Load()
	if w == nil {
		return fmt.Errorf("app %s does not run: %w", a.name, ErrNotReady)
	}
	if err := w.Ready(); err != nil {
		return fmt.Errorf("app %s: %w: %w", a.name, ErrNotReady, err)
	}
	return nil
}

// Close closes the connections that the app opened itself, never a client that
// was given to it. Afterwards the app cannot be used. Call it when Run has
// returned; further calls do nothing.
func (a *App) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	if a.client == nil {
		return nil
	}
	client := a.client
	a.client = nil
	return client.Close()
}

// register runs fn, which panics on a mistake. It panics itself once registration is
// over.
func (a *App) register(fn func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.started {
		panic("runnel: app " + a.name + ": streams, processors and tasks are registered before Run")
	}
	fn()
}

// isStarted reports whether registration is over.
func (a *App) isStarted() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.started
}

// settings are the app's options after environment and defaults, which are
// read once.
func (a *App) settings() (*Options, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.settingsLocked()
}

func (a *App) settingsLocked() (*Options, error) {
	if a.resolved == nil {
		env, o := newEnvironment(), a.opts
		env.app(&o)
		if err := env.err(); err != nil {
			return nil, err
		}
		a.resolved = &o
	}
	return a.resolved, nil
}

// redis returns the client, made at first use; nothing is sent.
func (a *App) redis() (*store.Client, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, ErrClosed
	}
	if a.client != nil {
		return a.client, nil
	}
	o, err := a.settingsLocked()
	if err != nil {
		return nil, err
	}
	files := redisconn.TLSFiles{CA: o.RedisCA, Cert: o.RedisCert, Key: o.RedisKey}
	if a.inside {
		files = redisconn.TLSFiles{}
	}
	client, err := store.Open(redisconn.Options{
		Redis: o.Redis, URL: o.RedisURL, TLS: files, Keys: o.keys(a.name),
		MinReplicas: o.Durability.MinReplicas, ReplicationTimeout: o.Durability.Timeout})
	if err != nil {
		if o.Redis == nil && a.opts.RedisURL == "" { // the default is well-formed
			err = fmt.Errorf("environment variable RUNNEL_REDIS_URL: %w", err)
		}
		return nil, err
	}
	for _, kind := range a.kinds {
		client.Uses(kind)
	}
	a.client = client
	return client, nil
}

// uses notes that the app has keys of a kind of streams, or store.Tables. It is called while the app registers something.
func (a *App) uses(kind string) {
	a.kinds = append(a.kinds, kind)
	if a.client != nil {
		a.client.Uses(kind)
	}
}

// sender returns where records go.
func (a *App) sender() (appview.Sender, error) {
	a.mu.Lock()
	to := a.intercepted
	a.mu.Unlock()
	if to != nil {
		return to, nil
	}
	return a.redis()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
