package runnel

import (
	"context"
	"fmt"
	"time"

	"github.com/runnel-go/runnel/internal/leader"

	"github.com/robfig/cron/v3"
)

// A TaskFunc is background work. ctx ends when the worker stops or, of a
// leader-only task, when the worker may no longer be the leader. An error or a
// panic is logged and counted; it stops nothing.
type TaskFunc func(ctx context.Context) error

// TaskOptions configure a task.
type TaskOptions struct {
	Leader   bool           // run on the elected leader only
	TimeZone *time.Location // of Cron; default Options.TimeZone

	// Durable lets a leader-only Every or Cron remember in Redis which of its due
	// times was last, so that a restart or another leader neither forgets one nor
	// runs one twice: each due time is claimed before the run, and a run that
	// ends with its worker is not repeated. Redis' clock says what is due. The
	// due times of Every go on in the rhythm that they had; those of a task that never
	// ran begin at the moment at which a leader sees it first.
	Durable bool
	// CatchUp says what becomes of the due times of a durable task at which no
	// leader was there. Default CatchUpOnce.
	CatchUp CatchUp
}

// A CatchUp says what becomes of due times at which no leader was there. What
// becomes due while the task itself runs is left out, but under CatchUpAll.
type CatchUp int

const (
	CatchUpOnce CatchUp = leader.CatchUpOnce // one run for all of them, at once, with the latest as DueTime
	CatchUpNone CatchUp = leader.CatchUpNone // they are left out
	CatchUpAll  CatchUp = leader.CatchUpAll  // a run for each, the oldest first; of more than 1 000 the latest
)

// DueTime returns the time at which the task that ctx was given to was due: of
// Every and Cron the one this run is for, however late it is; the zero time for
// Task, and where ctx is none of a task.
func DueTime(ctx context.Context) time.Time { return leader.DueTime(ctx) }

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
	a.addTask("Every", name, fn, opts, func(t *leader.Task) { t.Every = d })
}

// Cron registers fn to run at the times of spec: five fields (minute, hour, day
// of month, month, day of week), or "@hourly" and the like, or "@every 90s". It
// never overlaps itself. It panics as Task does, and where spec is malformed or names
// no time, as "0 0 31 2 *" does.
func (a *App) Cron(name, spec string, fn TaskFunc, opts *TaskOptions) {
	schedule, err := parseCron(spec)
	if err != nil {
		panic("runnel: app " + a.name + ": Cron " + name + ": " + err.Error())
	}
	a.addTask("Cron", name, fn, opts, func(t *leader.Task) { t.Next = schedule.Next })
}

// parseCron reads the times of a task. The library panics at some malformed ones.
func parseCron(spec string) (schedule cron.Schedule, err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("malformed times %q", spec)
		}
	}()
	if schedule, err = cron.ParseStandard(spec); err == nil && schedule.Next(time.Now()).IsZero() {
		err = fmt.Errorf("the times %q never come", spec)
	}
	return schedule, err
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
		for _, other := range a.tasks {
			if other.Name == name {
				panic(where + "the app has a task of that name already")
			}
		}
		a.tasks = append(a.tasks, t)
	})
}

// checkDurable says what is wrong with what a task should remember.
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
