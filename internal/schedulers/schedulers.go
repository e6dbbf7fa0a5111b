// Package schedulers is what operators see and do of schedulers: the extension of package schedule. It knows schedulers by what is in
// Redis alone, so that it works without the code of their app. By file:
//
//	schedulers.go  the extension; which schedulers an app has, and what arguments name of them
//	commands.go    the commands, their arguments and flags; worker
//	look.go        ls, show, next
//	grid.go        grid, runs, logs: tasks at their times
//	ask.go         apply, rm, activate, clear, cancel, backfill, ops; pause and resume
//	metrics.go     metrics, status, and what check finds
//	page.go        the page of the dashboard, with page.js
package schedulers

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/jobs"
	"github.com/runnel-go/runnel/internal/records"
	"github.com/runnel-go/runnel/internal/schedule"
	"github.com/runnel-go/runnel/internal/store"
)

// Declare adds a scheduler to a *runnel.App without code; package schedule sets it. With exec its workers run commands.
var Declare func(app any, name string, concurrency int, exec bool) error

// New returns the extension. In a program with the app's code its schedulers count Ends and Spent; else count is nil.
func New(count *extension.Counters) *extension.Extension {
	return &extension.Extension{
		Name: "schedule", Usage: "look after jobs and their runs",
		Present: func(ctx context.Context, c *store.Client) (bool, error) {
			all, err := load(ctx, c, "")
			if len(all) > 0 { // also one whose jobs are not readable: its commands say so
				return true, nil
			}
			return false, err
		},
		Absent:   ": start a worker that has it, such as `schedule worker`",
		Commands: commands(), Targets: targets, Findings: findings, Status: status, Metrics: metrics, Gather: extension.Gatherer(count, gather),
		Page: page(),
	}
}

// A scheduler is one of an app, as its metadata has it.
type scheduler struct {
	*schedule.Scheduler
	name       string
	partitions int
	decoder    *records.Decoder
	jobs       map[string]*schedule.Job // that are stored
}

// load returns the schedulers of an app, or one of them. With an error the last one lacks its jobs.
func load(ctx context.Context, c *store.Client, name string) (all []*scheduler, err error) {
	names := []string{name}
	if name == "" {
		names, err = c.Streams(ctx)
	}
	for _, name := range names {
		meta, there, err := c.LoadMeta(ctx, name)
		if err == nil && there && meta.Kind == schedule.Kind {
			s := &scheduler{schedule.New(c, name), name, meta.Partitions, records.NewDecoder(name, meta, nil), nil}
			s.jobs, err = s.Ledger().Jobs(ctx)
			all = append(all, s)
		}
		if err != nil {
			return all, err
		}
	}
	return all, err
}

// one returns the scheduler of that name, or for "" the only one.
func one(ctx context.Context, c *store.Client, name string) (*scheduler, error) {
	all, err := load(ctx, c, "")
	if err != nil {
		return nil, err
	}
	by := map[string]*scheduler{}
	for _, s := range all {
		by[s.name] = s
	}
	name, err = extension.Choose("the app", "scheduler", "--"+flagScheduler+" NAME", name, slices.Sorted(maps.Keys(by)))
	return by[name], err
}

// names returns the names of the jobs.
func (s *scheduler) names() []string { return slices.Sorted(maps.Keys(s.jobs)) }

// partition returns the partition of a source.
func (s *scheduler) partition(source string) int {
	n, _ := s.decoder.PartitionOf(source) // schedulers have no partitioner of their own
	return n
}

// find sets what JOB, JOB/TASK or JOB/TRIGGER names, as a word of a call has it. The JOB may be missing if there is one alone,
// the TASK if it is in brackets.
func (r *request) find(on, word string) (err error) {
	job, part := on, ""
	if strings.Contains(word, "/") {
		job, part, _ = strings.Cut(on, "/")
	}
	if r.job, err = extension.Choose("scheduler "+r.name, "job", word, job, r.names()); err != nil {
		return err
	}
	if word == "JOB/TASK" || part != "" && strings.Contains(word, "TASK") {
		var tasks []string
		for _, task := range r.def().Tasks {
			tasks = append(tasks, task.Name)
		}
		part, err = extension.Choose("job "+r.job, "task", word, part, tasks)
	}
	r.part = part
	return err
}

// def returns the definition of the job.
func (r *request) def() *jobs.Job { return r.jobs[r.job].Def }

// source returns a task of the job as Redis has it.
func (r *request) source(task string) string { return jobs.Source{Job: r.job, Name: task}.String() }

// timeHelp is how people write a logical time.
const timeHelp = "RFC 3339, a date, last, or a duration back such as -36h"

// parseTime reads a time, of which a duration counts from now; what is missing is as given.
func parseTime(text string, missing time.Time) (time.Time, error) {
	if text == "" {
		return missing, nil
	}
	if t, err := jobs.ParseTime(text); err == nil {
		return t, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d <= 0 {
		return time.Now().Add(d).UTC(), nil
	}
	return time.Time{}, extension.Usagef("%q is no time: say %s", text, timeHelp)
}

// far is behind every logical time.
var far = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// when reads the logical time of a request; "last" is the newest that there is.
func (r *request) when(ctx context.Context, text string) (err error) {
	if text != "last" {
		r.at, err = parseTime(text, r.at)
		return err
	}
	cells, err := r.cells(ctx, far, 1)
	for _, of := range cells {
		if of[0].Time.After(r.at) {
			r.at = of[0].Time
		}
	}
	if err == nil && r.at.IsZero() {
		err = extension.Usagef("nothing of it has run yet, so it has no last time")
	}
	return err
}

// show returns a logical time as people read it and write it, a whole day as a date.
func show(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return strings.TrimSuffix(t.UTC().Format(time.RFC3339Nano), "T00:00:00Z")
}

// timeAt returns a time that is stored in ms, the zero time for 0.
func timeAt(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
