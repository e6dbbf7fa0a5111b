package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/runnel-go/runnel/internal/leader"
)

// A Task is background work of the user. Without Every and Next it runs once.
type Task struct {
	Name     string
	Leader   bool
	Every    time.Duration
	Next     func(time.Time) time.Time // the first time of a schedule after another
	TimeZone *time.Location
	Run      func(context.Context) error

	Durable bool // of the leader's: see durable
	CatchUp CatchUp
}

type dueKey struct{}

// DueTime is the time at which the task that ctx belongs to was due, zero for one
// that was not due at a time.
func DueTime(ctx context.Context) time.Time {
	due, _ := ctx.Value(dueKey{}).(time.Time)
	return due
}

// runTasks runs all tasks until ctx ends and they have returned. Only a worker
// that has leader-only tasks campaigns.
func (w *Worker) runTasks(ctx context.Context) {
	var everywhere, leading []*Task
	for _, t := range w.cfg.Tasks {
		if t.Leader {
			leading = append(leading, t)
		} else {
			everywhere = append(everywhere, t)
		}
	}
	var g errgroup.Group
	g.Go(func() error { w.runAll(ctx, everywhere, ""); return nil })
	if len(leading) > 0 {
		c := &leader.Candidate{
			Redis: w.client.Redis(), Key: w.client.Keys().Leader(), Old: w.client.Keys().OldLeader(), Name: w.name, Poll: w.cfg.LeaderPoll, Log: w.log,
		}
		g.Go(func() error {
			c.Run(ctx, func(term context.Context) { w.runAll(term, leading, c.Token()) })
			return nil
		})
	}
	g.Wait()
}

// runAll runs tasks until ctx ends. token is the leader's, for those that are
// durable.
func (w *Worker) runAll(ctx context.Context, tasks []*Task, token string) {
	var g errgroup.Group
	for _, t := range tasks {
		if t.Durable {
			g.Go(func() error { w.runDurable(ctx, t, token); return nil })
		} else {
			g.Go(func() error { w.runTask(ctx, t); return nil })
		}
	}
	g.Go(func() error { <-ctx.Done(); return nil })
	g.Wait()
}

func (w *Worker) runTask(ctx context.Context, t *Task) {
	if t.Every == 0 && t.Next == nil {
		w.callTask(ctx, t, time.Time{})
		return
	}
	for due := w.due(t, w.now()); ; {
		timer := time.NewTimer(due.Sub(w.now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if t.Next != nil && w.now().Round(0).Before(due.Round(0)) {
			continue // the clock was set back: the timer counts on the monotonic one
		}
		w.callTask(ctx, t, due.Round(0))
		// What became due meanwhile is left out.
		now := w.now()
		if t.Every > 0 {
			due = due.Add(t.Every * (1 + max(0, now.Sub(due))/t.Every))
		} else {
			due = w.due(t, now)
		}
		if due.IsZero() {
			return
		}
	}
}

// due is the first time after now.
func (w *Worker) due(t *Task, now time.Time) time.Time {
	if t.Every > 0 {
		return now.Add(t.Every)
	}
	zone := t.TimeZone
	if zone == nil {
		zone = w.cfg.TimeZone
	}
	return t.Next(now.In(zone))
}

// awaitTasks waits for the tasks, whose context has ended, for Grace and a second
// more. One that does not return is an error, as a processor's function is.
func (w *Worker) awaitTasks(ended <-chan struct{}) {
	timer := time.NewTimer(w.cfg.Grace + stuckPatience)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		w.halt(fmt.Errorf("tasks %v did not return within %v and a second more", w.calls.names(), w.cfg.Grace))
	}
}

// calls are the tasks that run.
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
func (w *Worker) callTask(ctx context.Context, t *Task, due time.Time) {
	if !due.IsZero() {
		ctx = context.WithValue(ctx, dueKey{}, due)
	}
	w.calls.add(t.Name, 1)
	defer w.calls.add(t.Name, -1)
	began := time.Now()
	if err := t.Run(ctx); err != nil && ctx.Err() == nil {
		w.count.TaskFailures.Add(1)
		w.log.Error("task: error", "task", t.Name, "after", time.Since(began), "err", err)
	}
}
