package leader

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/store"
)

// A Task is a background function of the user. Without Every and Next it runs once.
type Task struct {
	Name     string
	Leader   bool
	Every    time.Duration
	Next     func(time.Time) time.Time // the first time of a schedule after another
	TimeZone *time.Location
	Run      func(context.Context) error

	Durable bool // of the leader's: see durable
	CatchUp int  // CatchUpOnce, …
}

type dueKey struct{}

// DueTime returns the due time of the run that ctx belongs to, zero if the run has none.
func DueTime(ctx context.Context) time.Time {
	due, _ := ctx.Value(dueKey{}).(time.Time)
	return due
}

// Tasks runs the tasks of one worker: its own, and while the worker leads also the leader's. Its
// fields are set before Run.
type Tasks struct {
	List     []*Task
	Store    store.TaskStore
	Worker   string        // its name
	Poll     time.Duration // of the leadership
	TimeZone *time.Location
	Log      *slog.Logger
	Errors   *atomic.Int64    // of Redis
	Failures *atomic.Int64    // errors and panics of tasks
	Now      func() time.Time // the clock of schedules; nil: time.Now

	calls   calls
	claimed claims
}

func (s *Tasks) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

// Running returns the names of the tasks that run at the moment, sorted. It may be called
// concurrently.
func (s *Tasks) Running() []string { return s.calls.names() }

// Run runs all tasks until ctx ends and they have returned. Only a worker
// that has leader-only tasks campaigns.
func (s *Tasks) Run(ctx context.Context) {
	var everywhere, leading []*Task
	for _, t := range s.List {
		if t.Leader {
			leading = append(leading, t)
		} else {
			everywhere = append(everywhere, t)
		}
	}
	var running sync.WaitGroup
	running.Go(func() { s.runAll(ctx, everywhere, "") })
	if len(leading) > 0 {
		c := &Candidate{
			Redis: s.Store.Redis(), Key: s.Store.Keys().Leader(), Old: s.Store.Keys().OldLeader(), Name: s.Worker, Poll: s.Poll, Log: s.Log,
		}
		running.Go(func() {
			c.Run(ctx, func(term context.Context) { s.runAll(term, leading, c.token) })
		})
	}
	running.Wait()
}

// runAll runs tasks until ctx ends. token is the leader's, for durable tasks.
func (s *Tasks) runAll(ctx context.Context, tasks []*Task, token string) {
	var running sync.WaitGroup
	for _, t := range tasks {
		if t.Durable {
			running.Go(func() { s.runDurable(ctx, t, token) })
		} else {
			running.Go(func() { s.runTask(ctx, t) })
		}
	}
	<-ctx.Done()
	running.Wait()
}

func (s *Tasks) runTask(ctx context.Context, t *Task) {
	if t.Every == 0 && t.Next == nil {
		s.callTask(ctx, t, time.Time{})
		return
	}
	for due := s.due(t, s.now()); ; {
		if !monotime.Sleep(ctx, due.Sub(s.now())) {
			return
		}
		if t.Next != nil && s.now().Round(0).Before(due.Round(0)) {
			continue // the clock was set back: the timer counts on the monotonic one
		}
		s.callTask(ctx, t, due.Round(0))
		// Due times that passed meanwhile are skipped.
		now := s.now()
		if t.Every > 0 {
			due = due.Add(t.Every * (1 + max(0, now.Sub(due))/t.Every))
		} else {
			due = s.due(t, now)
		}
		if due.IsZero() {
			return
		}
	}
}

func (s *Tasks) due(t *Task, now time.Time) time.Time {
	if t.Every > 0 {
		return now.Add(t.Every)
	}
	return t.Next(now.In(cmp.Or(t.TimeZone, s.TimeZone)))
}

// calls are the running tasks.
type calls struct {
	mu sync.Mutex
	of map[string]int
}

func (c *calls) add(name string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	if c.of[name] += n; c.of[name] == 0 {
		delete(c.of, name)
	}
}

func (c *calls) names() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.of))
}

// callTask runs a task once, at its due time if it has one; an error, a panic
// included, is logged and counted.
func (s *Tasks) callTask(ctx context.Context, t *Task, due time.Time) {
	if !due.IsZero() {
		ctx = context.WithValue(ctx, dueKey{}, due)
	}
	s.calls.add(t.Name, 1)
	defer s.calls.add(t.Name, -1)
	began := time.Now()
	if err := t.Run(ctx); err != nil && ctx.Err() == nil {
		s.Failures.Add(1)
		s.Log.Error("task failed", "task", t.Name, "after", time.Since(began), "err", err, "help", help.TaskFailed)
	}
}
