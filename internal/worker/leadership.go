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
	g.Go(func() error { w.runAll(ctx, everywhere); return nil })
	if len(leading) > 0 {
		c := &leader.Candidate{
			Redis: w.client.Redis(), Key: w.client.Keys().Leader(), Name: w.name, Poll: w.cfg.LeaderPoll, Log: w.log,
		}
		g.Go(func() error {
			c.Run(ctx, func(term context.Context) { w.runAll(term, leading) })
			return nil
		})
	}
	g.Wait()
}

// runAll runs tasks until ctx ends.
func (w *Worker) runAll(ctx context.Context, tasks []*Task) {
	var g errgroup.Group
	for _, t := range tasks {
		g.Go(func() error { w.runTask(ctx, t); return nil })
	}
	g.Go(func() error { <-ctx.Done(); return nil })
	g.Wait()
}

func (w *Worker) runTask(ctx context.Context, t *Task) {
	if t.Every == 0 && t.Next == nil {
		w.callTask(ctx, t)
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
		w.callTask(ctx, t)
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

// callTask runs a task once; an error, a panic included, is logged and counted.
func (w *Worker) callTask(ctx context.Context, t *Task) {
	w.calls.add(t.Name, 1)
	defer w.calls.add(t.Name, -1)
	began := time.Now()
	if err := t.Run(ctx); err != nil && ctx.Err() == nil {
		w.count.TaskFailures.Add(1)
		w.log.Error("task: error", "task", t.Name, "after", time.Since(began), "err", err)
	}
}
