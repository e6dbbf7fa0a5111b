package runnel

import (
	"context"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/runnel-go/runnel/internal/worker"
)

// A TaskFunc is background work. ctx ends when the worker stops or, of a
// leader-only task, when the worker may no longer be the leader. An error or a
// panic is logged and counted; it stops nothing.
type TaskFunc func(ctx context.Context) error

// TaskOptions configure a task.
type TaskOptions struct {
	Leader   bool           // run on the elected leader only
	TimeZone *time.Location // of Cron; default Options.TimeZone
}

// Task registers fn to run once when a worker starts; leader-only, once per
// term of leadership. It panics on a bad or taken name, a nil fn, and after Run.
func (a *App) Task(name string, fn TaskFunc, opts *TaskOptions) {
	a.addTask("Task", name, fn, opts, nil)
}

// Every registers fn to run every d, first after d. It never overlaps itself:
// what becomes due while it runs is left out. It panics as Task does, and where
// d is not positive.
func (a *App) Every(name string, d time.Duration, fn TaskFunc, opts *TaskOptions) {
	if d <= 0 {
		panic("runnel: app " + a.name + ": Every " + name + ": the interval must be positive")
	}
	a.addTask("Every", name, fn, opts, func(t *worker.Task) { t.Every = d })
}

// Cron registers fn to run at the times of spec: five fields (minute, hour, day
// of month, month, day of week), or "@hourly" and the like, or "@every 90s". It
// never overlaps itself. It panics as Task does, and where spec is malformed.
func (a *App) Cron(name, spec string, fn TaskFunc, opts *TaskOptions) {
	schedule, err := cron.ParseStandard(spec)
	if err != nil {
		panic("runnel: app " + a.name + ": Cron " + name + ": " + err.Error())
	}
	a.addTask("Cron", name, fn, opts, func(t *worker.Task) { t.Next = schedule.Next })
}

func (a *App) addTask(kind, name string, fn TaskFunc, opts *TaskOptions, set func(*worker.Task)) {
	where := "runnel: app " + a.name + ": " + kind + " " + name + ": "
	mustName(where, name, false)
	if fn == nil {
		panic(where + "nil function")
	}
	t := &worker.Task{Name: name, Run: func(ctx context.Context) (err error) {
		defer recoverInto(&err)
		return fn(ctx)
	}}
	if opts != nil {
		t.Leader, t.TimeZone = opts.Leader, opts.TimeZone
	}
	if set != nil {
		set(t)
	}
	a.register(func() {
		for _, other := range a.tasks {
			if other.Name == name {
				panic(where + "the app has a task of that name already")
			}
		}
		a.tasks = append(a.tasks, t)
	})
}
