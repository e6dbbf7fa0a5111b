package schedule

import (
	"errors"
	"fmt"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/jobs"
)

// A Job is triggers, and tasks that run at their logical times.
type Job struct {
	Description string
	Triggers    []Trigger
	Tasks       []Task
}

// A Trigger fires at logical times: those of Cron, or Start and each Every behind it.
type Trigger struct {
	Name       string        // letters, digits, "_" and "-", at most 64
	Start, End time.Time     // logical times from Start on and before End. Without a Start those of Cron begin when it is first applied
	Every      time.Duration // of absolute time, whole milliseconds, from Start. Either this …
	Cron       string        // … or five fields, "@daily" and the like
	TimeZone   string        // of Cron, an IANA name; default UTC
	Offset     time.Duration // it fires so much after the logical time; negative: before it

	// CatchUp selects what becomes of missed times: several were due when a worker looked. Default CatchUpEarliest.
	CatchUp    CatchUp
	MaxCatchUp int           // of missed times, at most so many, the latest. Default 1000
	Late       time.Duration // a time that is later than this is left out; default none, with CatchUpNone 1 min
}

// A Task runs at a logical time when its sources have ended at that time. One of Do, Handler, Exec and Shell says what it
// does; without any it is a join, which succeeds at once.
type Task struct {
	Name string // letters, digits, "_" and "-", at most 64
	// After are the sources that must have succeeded: "trigger/NAME", "task/NAME" of the job, "JOB/task/NAME" of another one;
	// with "?" behind, its end is enough, however it ended.
	After     []string
	OnFailure []string      // "task/NAME": each failure of one fires this task. Not together with After
	Need      int           // how many of After are enough; default all
	Do        Func          // may be called concurrently, for several times
	Handler   string        // the name of a function that workers know by Scheduler.Handle
	Exec      []string      // a command with its arguments
	Shell     string        // a command for /bin/sh -c
	Retry     *runnel.Retry // nil: one attempt. Its Order must be zero
	Timeout   time.Duration // of an attempt; default Options.Timeout
	Priority  Priority
	Limit     int // runs at once in the app, over all times; default any number
}

// A CatchUp is what becomes of times that are missed.
type CatchUp string

const (
	CatchUpEarliest = CatchUp(jobs.CatchUpEarliest) // they run, the oldest first
	CatchUpLatest   = CatchUp(jobs.CatchUpLatest)   // they run, the newest first
	CatchUpRandom   = CatchUp(jobs.CatchUpRandom)   // they run in an order by chance, which is the same at each look
	CatchUpNone     = CatchUp(jobs.CatchUpNone)     // they are left out, and counted
)

// A Priority is the order in which waiting runs are started. Missed times have the lowest one, and what they lead to.
type Priority string

const (
	PriorityHigh     = Priority(jobs.PriorityHigh)     // of what people activate
	PriorityNormal   = Priority(jobs.PriorityNormal)   // the default
	PriorityLow      = Priority(jobs.PriorityLow)      // before missed times alone
	PriorityBackfill = Priority(jobs.PriorityBackfill) // of missed times and backfills; leaves one place of a worker free
)

// Check returns all that is wrong with a job, each with its place, nil for nothing. It does no I/O: whether tasks of other jobs are
// there is known when it is applied.
func (j Job) Check(name string) error {
	_, err := j.checked(name)
	return err
}

func (j Job) checked(name string) (*jobs.Job, error) {
	stored, err := j.stored(name)
	if err == nil {
		err = faults(jobs.Check(stored))
	}
	return stored, err
}

func faults(all []jobs.Fault) error {
	errs := make([]error, len(all))
	for i, f := range all {
		errs[i] = f
	}
	return errors.Join(errs...)
}

// stored returns the job as Redis has it: functions are known by the names of their tasks.
func (j Job) stored(name string) (*jobs.Job, error) {
	out := &jobs.Job{Name: name, Description: j.Description}
	for _, t := range j.Triggers {
		out.Triggers = append(out.Triggers, jobs.Trigger{
			Name: t.Name, Start: t.Start.UTC().Truncate(time.Millisecond), End: t.End.UTC().Truncate(time.Millisecond), Every: jobs.Duration(t.Every), Cron: t.Cron, TimeZone: t.TimeZone,
			Offset: jobs.Duration(t.Offset), CatchUp: jobs.CatchUp(t.CatchUp), MaxCatchUp: t.MaxCatchUp, Late: jobs.Duration(t.Late),
		})
	}
	for _, t := range j.Tasks {
		one := jobs.Task{
			Name: t.Name, After: t.After, OnFailure: t.OnFailure, Need: t.Need, Handler: t.Handler, Exec: t.Exec, Shell: t.Shell,
			Timeout: jobs.Duration(t.Timeout), Priority: jobs.Priority(t.Priority), Limit: t.Limit,
		}
		if t.Do != nil {
			if t.Handler != "" {
				return nil, fmt.Errorf("task %s: it has both a function and a handler", t.Name)
			}
			one.Handler = handlerOf(name, t.Name)
		}
		if r := t.Retry; r != nil {
			if r.Order != 0 {
				return nil, fmt.Errorf("task %s: retry: runs have no order", t.Name)
			}
			one.Retry = &jobs.Retry{
				Max: r.Max, MinBackoff: jobs.Duration(r.MinBackoff), MaxBackoff: jobs.Duration(r.MaxBackoff), Factor: r.Factor, Jitter: r.Jitter,
			}
		}
		out.Tasks = append(out.Tasks, one)
	}
	return out, nil
}

// handlerOf is the name under which the function of a task in code is known.
func handlerOf(job, task string) string { return job + "/" + task }
