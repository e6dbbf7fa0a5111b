package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/jobs"
	ischedule "github.com/runnel-go/runnel/internal/schedule"
	"github.com/runnel-go/runnel/internal/schedulers"
	"github.com/runnel-go/runnel/internal/worker"
)

// Options configure a scheduler. A zero field inherits from runnel.Options.Stream or Processor where these have one of that name,
// then from the environment, then takes the default.
type Options struct {
	// Partitions is over how many parts triggers and tasks are spread; it cannot change once the scheduler exists. Default 16.
	Partitions int
	// Concurrency is how many runs one worker has at once. Default 8.
	Concurrency int
	// Ahead is how many runs of missed times and backfills may wait at a time. Default 1000.
	Ahead int
	// Keep is how many logical times of each task the history has, and KeepMin how long each stays behind its end. Default 1000, 1 h.
	Keep    int
	KeepMin time.Duration
	// Timeout is that of tasks which have none. Default none.
	Timeout time.Duration

	// Exec allows the tasks that are commands; nil: this worker leaves them to others.
	Exec *ExecOptions

	Lease, Grace, JoinDelay time.Duration // as in runnel.ProcessorOptions; Grace is also what runs get at shutdown
}

const (
	defaultConcurrency = 8
	mostConcurrency    = 1024
	defaultKeep        = 1000
	defaultKeepMin     = time.Hour
	defaultAhead       = 1000
	// factsKept is the length of the log of a partition; facts are trimmed once they are applied.
	factsKept = 4096
)

// A Scheduler is the jobs of an app. Its methods are safe for concurrent use, but for Job and Handle.
type Scheduler struct {
	name  string
	app   *runnel.App
	opts  Options
	crew  *crew
	count *extension.Counters // of all schedulers of the app

	jobs     map[string]*jobs.Job
	handlers map[string]Func

	mu        sync.Mutex // held by begin, which sets what follows
	begun     bool       // no more jobs and handlers
	stream    *appview.Stream
	calls     *ischedule.Scheduler
	inherited *appview.Inherited
	log       *slog.Logger // for what belongs to no partition

	book book
}

// New adds a scheduler to an app. Its name is in one space with those of streams. A nil opts is all defaults. New does no I/O. It panics as
// runnel.NewStream does, and if an option is out of range.
func New(app *runnel.App, name string, opts *Options) *Scheduler {
	var o Options
	if opts != nil {
		o = *opts
	}
	s := &Scheduler{name: name, app: app, opts: o, jobs: map[string]*jobs.Job{}, handlers: map[string]Func{}, book: book{busy: make(chan struct{}, 1)}}
	if o.Concurrency < 0 || o.Concurrency > mostConcurrency || o.Ahead < 0 || o.Timeout < 0 || o.Keep < 0 || o.KeepMin < 0 {
		panic(s.where() + fmt.Sprintf("Concurrency %d of 1 to %d, Ahead %d, Timeout %v, Keep %d, KeepMin %v: out of range", o.Concurrency, mostConcurrency, o.Ahead, o.Timeout, o.Keep, o.KeepMin))
	}
	facts := runnel.NewStream(app, name, func(struct{ Fact string }) string { return "" }, &runnel.StreamOptions{
		Partitions: o.Partitions, MaxLen: factsKept, Partitioner: runnel.XXHash,
	})
	extension.Declare(facts, ischedule.Kind, func() []string { return []string{ischedule.GateRuns} })
	facts.Process(ischedule.Processor, s.process, &runnel.ProcessorOptions{
		OnError: runnel.Halt, Lease: o.Lease, Grace: o.Grace, JoinDelay: o.JoinDelay, Timeout: -1,
	})
	s.count = extension.Own(app, func() (*extension.Counters, *extension.Extension) {
		count := &extension.Counters{}
		return count, schedulers.New(count)
	})
	s.crew = newCrew(s, cmp.Or(o.Concurrency, defaultConcurrency))
	app.Task(name, s.crew.work, nil)
	return s
}

func init() {
	schedulers.Declare = func(app any, name string, concurrency int, exec bool) (err error) {
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("%v", v)
			}
		}()
		opts := &Options{Concurrency: concurrency}
		if exec {
			opts.Exec = &ExecOptions{}
		}
		New(app.(*runnel.App), name, opts)
		return nil
	}
}

func (s *Scheduler) where() string {
	return "runnel: app " + s.app.Name() + ": scheduler " + s.name + ": "
}

// Name returns the name of the scheduler.
func (s *Scheduler) Name() string { return s.name }

// Job registers a job. Workers store it when they start, unless a later definition has replaced this very one: what was replaced comes back
// by Apply only. Job panics where Check has an error, on a name that is taken, and after Run or the first call that needed
// Redis.
func (s *Scheduler) Job(name string, job Job) {
	stored, err := job.checked(name)
	s.refuse("Job "+name, err, s.jobs[name] != nil)
	s.jobs[name] = stored
	for _, t := range job.Tasks {
		if t.Do != nil {
			s.handlers[handlerOf(name, t.Name)] = t.Do
		}
	}
}

// Handle binds a name to fn, for tasks that name it as their Handler. A worker without it leaves such runs to others. Handle panics on an
// empty name or one that is taken, a nil fn, and after Run or the first call that needed Redis.
func (s *Scheduler) Handle(name string, fn Func) {
	var err error
	if name == "" || fn == nil {
		err = errors.New("a handler has a name and a function")
	}
	s.refuse("Handle "+name, err, s.handlers[name] != nil)
	s.handlers[name] = fn
}

// refuse panics if there is an error in what is registered, if it is too late, or if the name is taken.
func (s *Scheduler) refuse(what string, err error, taken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.begun:
		err = errors.New("jobs and handlers are registered before Run and before the first call that needs Redis")
	case err == nil && taken:
		err = errors.New("there is one of that name already")
	}
	if err != nil {
		panic(s.where() + what + ": " + err.Error())
	}
}

// begin resolves the settings, once. It does no I/O.
func (s *Scheduler) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls != nil {
		return nil
	}
	s.begun = true
	stream, client, inherited, err := appview.Of(s.app).Own(s.name)
	if err != nil {
		return err
	}
	settings, err := appview.Of(s.app).Settings()
	if err != nil {
		return err
	}
	log := cmp.Or(settings.Logger, slog.New(slog.DiscardHandler))
	s.log = log.With("app", s.app.Name(), "scheduler", s.name)
	s.stream, s.inherited, s.calls = stream, inherited, ischedule.New(client, s.name)
	return nil
}

// ready is begin, and ensures the metadata before the first call.
func (s *Scheduler) ready(ctx context.Context) error {
	if err := s.begin(); err != nil {
		return err
	}
	return s.stream.Ensure(ctx)
}

func (s *Scheduler) partitions() int { return s.stream.Meta.Partitions }

// partition returns the partition of a source.
func (s *Scheduler) partition(source string) int {
	return s.stream.Partition(source, s.stream.Meta.Partitions)
}

// process is the owner of one partition for one ownership. The events are facts, and wakes.
func (s *Scheduler) process(ctx context.Context, events *runnel.Events[struct{ Fact string }]) error {
	if err := s.begin(); err != nil {
		return err
	}
	o := newOwner(ctx, s, worker.OwnershipOf(ctx))
	var owning sync.WaitGroup
	owning.Go(o.run)
	for batch := range events.Take(factsPerBatch, 0).Raw() {
		o.own.Wake()
		if err := o.apply(batch); err != nil {
			return nil // the ownership ends
		}
	}
	owning.Wait()
	return nil
}
