package runnel

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/cron"
	"github.com/runnel-go/runnel/internal/leader"
)

// A TaskFunc is background work. ctx ends when the worker stops and, for a leader-only
// task, when the worker may no longer be the leader. An error or a panic is logged and
// counted; it stops nothing.
type TaskFunc func(ctx context.Context) error

// TaskOptions configure a task.
type TaskOptions struct {
	Leader   bool           // run on the elected leader only
	TimeZone *time.Location // of Cron; default Options.TimeZone

	// Durable makes a leader-only Every or Cron store its last due time in Redis, so that
	// a restart or another leader neither forgets a due time nor runs it twice. Each due
	// time is claimed before its run; a run that ends with its worker is not repeated.
	// Due times are by Redis' clock. Those of Every keep their rhythm; those of a task
	// that never ran begin when a leader first sees the task.
	Durable bool
	// CatchUp selects how a durable task handles due times at which there was no leader.
	// Default CatchUpOnce.
	CatchUp CatchUp
}

// A CatchUp selects how due times without a leader are handled. Due times that pass while
// the task itself runs are skipped, except under CatchUpAll.
type CatchUp int

const (
	CatchUpOnce CatchUp = iota // one run for all of them, at once, with the latest as DueTime
	CatchUpNone                // they are skipped
	CatchUpAll                 // a run for each, the oldest first; of more than 1 000 the latest
)

// DueTime returns the due time of the run that ctx belongs to, however late the run is.
// It is the zero time for Task, and if ctx belongs to no task.
func DueTime(ctx context.Context) time.Time { return leader.DueTime(ctx) }

// Task registers fn to run once when a worker starts; leader-only, once per
// term of leadership. It panics on a bad or taken name, a nil fn, and after Run.
func (a *App) Task(name string, fn TaskFunc, opts *TaskOptions) {
	a.addTask("Task", name, fn, opts, nil)
}

// Every registers fn to run every d, first after d. It never overlaps itself: due times
// that pass while it runs are skipped. Every panics as Task does, and if d is not
// positive.
func (a *App) Every(name string, d time.Duration, fn TaskFunc, opts *TaskOptions) {
	if d <= 0 {
		panic("runnel: app " + a.name + ": Every " + name + ": the interval must be positive")
	}
	a.addTask("Every", name, fn, opts, func(t *leader.Task) { t.Every = d })
}

// Cron registers fn to run at the times of spec: five fields (minute, hour, day of month,
// month, day of week), or "@hourly" and the like, or "@every 90s". It never overlaps
// itself. Cron panics as Task does, and if spec is malformed or matches no time, such as
// "0 0 31 2 *".
func (a *App) Cron(name, spec string, fn TaskFunc, opts *TaskOptions) {
	schedule, err := cron.Parse(spec)
	if err != nil {
		panic("runnel: app " + a.name + ": Cron " + name + ": " + err.Error())
	}
	a.addTask("Cron", name, fn, opts, func(t *leader.Task) { t.Next = schedule.Next })
}

func (a *App) addTask(kind, name string, fn TaskFunc, opts *TaskOptions, set func(*leader.Task)) {
	where := "runnel: app " + a.name + ": " + kind + " " + name + ": "
	mustName(where, name, false)
	if fn == nil {
		panic(where + "nil function")
	}
	t := &leader.Task{Name: name, Run: func(ctx context.Context) (err error) {
		defer recoverInto(&err)
		return fn(ctx)
	}}
	if opts != nil {
		t.Leader, t.TimeZone = opts.Leader, opts.TimeZone
		t.Durable, t.CatchUp = opts.Durable, int(opts.CatchUp)
	}
	if set != nil {
		set(t)
	}
	if err := checkDurable(t); err != "" {
		panic(where + err)
	}
	a.register(func() {
		if slices.ContainsFunc(a.tasks, func(t *leader.Task) bool { return t.Name == name }) {
			panic(where + "the app has a task of that name already")
		}
		a.tasks = append(a.tasks, t)
	})
}

// checkDurable returns what is wrong with a durable task's options, "" if nothing is.
func checkDurable(t *leader.Task) string {
	switch {
	case t.CatchUp < leader.CatchUpOnce || t.CatchUp > leader.CatchUpAll:
		return fmt.Sprintf("CatchUp: unknown value %d", t.CatchUp)
	case !t.Durable && t.CatchUp != leader.CatchUpOnce:
		return "CatchUp is of Durable tasks"
	case t.Durable && (!t.Leader || t.Every == 0 && t.Next == nil):
		return "Durable is of Every and Cron on the leader only"
	case t.Durable && t.Every%time.Millisecond != 0:
		return "Durable: the interval must be whole milliseconds"
	}
	return ""
}
