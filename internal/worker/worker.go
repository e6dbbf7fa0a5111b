// Package worker is one running process. It has an executor for each processor, which reads,
// runs and acks the partitions it owns, and goroutines that serve all executors.
//
//	worker        starts everything, stops everything
//	executor      one per processor: one member after the other
//	member        an executor under one ID: acquires partitions, owns them, loses them
//	claims        tries to acquire with an open outcome
//	ownerships    what a member owns
//	releaser      the end of ownerships: releases, losses, renewed takeovers
//	heartbeat     extends leases, three times per lease; _recover and _forgotten find what Redis
//	              has lost of a partition
//	partition     one ownership of one partition; _source is what its consumer takes from
//	lease         the lease of a partition, and the loss of those that end
//	lifecycle     the stages of the end of an ownership
//	fetcher       XREADGROUP for many partitions at once; _next chooses the partitions, _assign
//	              the connection, _failing handles reads that fail
//	acker         XACK for many partitions at once
//	course        how partitions are read and acks stored: _group and _position
//	staging       what an atomic processor has changed, until it is committed with its acks; ends
//	              knows when its rows end, expiry removes those that nothing waits for
//	retrystore    parked events in Redis; share divides a partition between them and new events
//	isolation     one suspect at a time; deaths counts the owners that ended at an event
//	quarantine    partitions that an operator has to release
//	rules         pauses and blocks; pausegate applies them to a partition
//	ownership     an ownership for work beside the consumer's loop: fence, gates, isolation
//	control       messages of other members
//	trimmer       trims acked entries
//	forwarder     moves delayed events that are due
//	counters      counts and latencies; stats exports them
//	logbatch      one log line about many partitions
//	signal        wakes a goroutine
//
// An event's way: fetcher → prefetch.Buffer → consumer (the root package) → prefetch.Buffer →
// acker. Tasks run under package leader. The package knows neither records nor middleware.
package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/leader"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/rebalance"
)

// startPatience is how long Redis may be out of reach at the start, and how long one step of it may take.
const startPatience = 5 * time.Second

// A Config configures a Worker.
type Config struct {
	App, Worker string
	Client      *store.Client
	Logger      *slog.Logger
	Processors  []*Processor
	Tasks       []*leader.Task
	LeaderPoll  time.Duration
	TimeZone    *time.Location
	Grace       time.Duration // of tasks, at shutdown
	Latencies   bool          // measure them
	// Ensure writes or checks the metadata of all streams, each in steps of its own.
	Ensure func(context.Context, Step) error
}

// A Step runs one part of a task that has several, and may bound its time.
type Step func(ctx context.Context, part func(context.Context) error) error

// AtOnce is the Step without a bound.
func AtOnce(ctx context.Context, part func(context.Context) error) error { return part(ctx) }

// A Worker runs once.
type Worker struct {
	cfg       *Config
	client    *store.Client
	log       *slog.Logger
	name      string
	count     *Counters // of what is not an executor's
	began     time.Time
	trimmer   *trimmer
	rules     *rulesKeeper
	isolation *crashIsolation
	loads     chan struct{} // one for each partition whose rows are loaded
	forwarder *forwarder
	tasks     *leader.Tasks

	executors []*executor
	running   context.Context // when it ends the worker drains; set before anything runs
	stop      context.CancelCauseFunc

	started atomic.Bool

	mu     sync.Mutex
	halted []error
}

// New returns a Worker that does nothing before Run.
func New(cfg *Config) *Worker {
	w := &Worker{cfg: cfg, client: cfg.Client, log: cfg.Logger, name: cfg.Worker, count: new(Counters), began: time.Now(), isolation: newCrashIsolation(), loads: make(chan struct{}, loadsAtOnce), running: context.Background()}
	w.tasks = &leader.Tasks{
		List: cfg.Tasks, Store: cfg.Client.TaskStore, Worker: cfg.Worker, Poll: cfg.LeaderPoll, TimeZone: cfg.TimeZone, Log: cfg.Logger,
		Errors: &w.count.Errors, Failures: &w.count.TaskFailures,
	}
	w.trimmer, w.rules, w.forwarder = newTrimmer(w), newRulesKeeper(w), newForwarder(w)
	for _, p := range cfg.Processors {
		w.executors = append(w.executors, newExecutor(w, p))
	}
	return w
}

// Run works until ctx ends, then drains; see runnel.App.Run.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.connect(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	ctx, w.stop = context.WithCancelCause(ctx)
	defer w.stop(nil)
	w.running = ctx
	services, stopServices := context.WithCancel(context.WithoutCancel(ctx))
	var serving sync.WaitGroup
	for _, serve := range []func(context.Context){w.control, w.trimmer.run, w.rules.run, w.forwarder.run} {
		serving.Go(func() { serve(services) })
	}
	tasks := make(chan struct{})
	go func() {
		defer close(tasks)
		w.tasks.Run(ctx)
	}()

	w.started.Store(true)
	w.warnOfEviction(ctx)
	w.log.Info("worker started", "redis", w.client.Addr(), "processors", len(w.executors), "tasks", len(w.cfg.Tasks))
	if len(w.executors) == 0 && len(w.cfg.Tasks) == 0 {
		w.log.Warn("nothing to run", "help", help.NothingToRun)
	}
	var executing sync.WaitGroup
	for _, x := range w.executors {
		executing.Go(func() {
			if err := x.run(ctx); err != nil {
				w.halt(err)
			}
		})
	}
	<-ctx.Done()
	executing.Wait()
	w.awaitTasks(tasks)
	stopServices()
	serving.Wait()
	err := w.haltErr()
	var processed int64
	for _, x := range w.executors {
		if len(x.p.Gates) == 0 { // else its events are wakes of an extension
			processed += x.count.Processed.Load()
		}
	}
	w.log.Info("worker stopped", "processed", processed, "halted", err != nil)
	return err
}

func (w *Worker) halt(err error) {
	w.count.Halted.Add(1)
	w.mu.Lock()
	w.halted = append(w.halted, err)
	w.mu.Unlock()
	w.log.Error("worker halts", "err", err, "help", help.WorkerHalts)
	w.stop(err)
}

func (w *Worker) haltErr() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.halted...)
}

// stopping reports whether partitions are given up because the worker ends.
func (w *Worker) stopping() bool { return w.running.Err() != nil }

// connect checks the server and the metadata, which takes its time for many streams on a slow link. It tries all of that again
// while the server is unreachable, or breaks off at any of it: a failover may end just before. It gives up when for all of
// startPatience it came no further. A try cut off by the deadline has no other error, so connect returns the error of the try
// before it.
func (w *Worker) connect(ctx context.Context) error {
	var before error
	furthest, since := 0, monotime.Now()
	left := func() time.Duration { return startPatience - time.Duration(monotime.Now()-since) }
	for {
		steps := 0
		err := w.try(ctx, func(ctx context.Context, part func(context.Context) error) error {
			ctx, cancel := context.WithTimeout(ctx, left())
			defer cancel()
			err := part(ctx)
			if steps++; steps > furthest && !redisconn.Unavailable(err) {
				furthest, since = steps, monotime.Now()
			}
			return err
		})
		switch {
		case err == nil || !redisconn.Unavailable(err):
			return err
		case before == nil || left() > 0:
			before = err
		}
		if pause := min(200*time.Millisecond, left()); pause <= 0 || !monotime.Sleep(ctx, pause) {
			return cmp.Or(ctx.Err(), before)
		}
	}
}

// try checks once the server, the rights and the metadata.
func (w *Worker) try(ctx context.Context, step Step) error {
	err := step(ctx, w.client.Check)
	if err == nil {
		err = step(ctx, func(ctx context.Context) error { return w.client.CheckRights(ctx, keys.Work) })
	}
	if err == nil {
		err = w.cfg.Ensure(ctx, step)
	}
	return err
}

// ensure calls cfg.Ensure until it succeeds for one stream or finds a contradiction: a flushed
// server has forgotten the metadata. Errors of other streams do not matter.
func (w *Worker) ensure(ctx context.Context, stream string, t *outage.Outage) error {
	for ctx.Err() == nil {
		err := w.cfg.Ensure(ctx, AtOnce)
		var conflict *store.MetaConflictError
		var python *rebalance.PythonError
		switch {
		case err == nil, !concerns(err, stream):
			return nil
		case errors.As(err, &conflict), errors.As(err, &python):
			return err
		}
		t.Wait(ctx, err)
	}
	return nil
}

// concerns reports whether one of the errors is about more than the metadata of other streams.
func concerns(err error, stream string) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return slices.ContainsFunc(joined.Unwrap(), func(err error) bool { return concerns(err, stream) })
	}
	var meta *store.MetaError
	return !errors.As(err, &meta) || meta.Stream == stream
}

// awaitTasks waits for the tasks, whose context has ended, for Grace and one more second. A
// task that does not return halts the worker with an error.
func (w *Worker) awaitTasks(ended <-chan struct{}) {
	timer := time.NewTimer(w.cfg.Grace + stuckPatience)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		w.halt(fmt.Errorf("tasks %v did not return within %v and a second more", w.tasks.Running(), w.cfg.Grace))
	}
}

// Ready returns nil when every executor owns what it is assigned and can read it, else
// what is missing.
func (w *Worker) Ready() error {
	switch {
	case !w.started.Load():
		return errors.New("starting")
	case w.stopping():
		return errDraining
	}
	for _, x := range w.executors {
		switch err := x.ready(); {
		case err != nil && w.stopping(): // the drain has begun meanwhile
			return errDraining
		case err != nil:
			return x.wrap(err)
		}
	}
	return nil
}

var errDraining = errors.New("draining")

func (x *executor) ready() error {
	m := x.member()
	if m == nil {
		if err := x.blindness(); err != nil {
			return fmt.Errorf("not reading: %w; %s", err, help.NotReading)
		}
		return errors.New("rejoining")
	}
	if err := m.notReading(); err != nil {
		return err
	}
	s := m.coord.State()
	switch {
	case !s.Joined && s.Err != nil:
		return fmt.Errorf("joining: %w", s.Err)
	case !s.Joined:
		return errors.New("joining")
	case s.Err != nil:
		return s.Err
	}
	if err := m.claims.err(s.Assigned); err != nil {
		return err
	}
	if !s.Settled() {
		return fmt.Errorf("owns partitions %s of the assigned %s", rebalance.Ranges(s.Owned), rebalance.Ranges(s.Assigned))
	}
	return nil
}
