// Package schedulers is what operators see and do of schedulers: the extension of package schedule. It knows schedulers by what is in
// Redis alone, so that it works without the code of their app. By file:
//
//	schedulers.go  the extension; which schedulers an app has, and what of them is named
//	commands.go    the commands, their arguments and flags
//	look.go        ls, show, next
//	grid.go        grid, runs: tasks at their times
//	ask.go         apply, rm, activate, clear, cancel, backfill, ops
//	work.go        worker, logs
//	targets.go     pause and resume of jobs
//	metrics.go     metrics, status, and what check finds
//	page.go        the page of the dashboard, with page.js
//	times.go       times as people write them
package schedulers

import (
	"cmp"
	"context"
	"fmt"
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

// New returns the extension; p is nil in a program without the app's code.
func New(p Process) *extension.Extension {
	return &extension.Extension{
		Name: "schedule", Usage: "look after jobs and their runs",
		Present: func(ctx context.Context, c *store.Client) (bool, error) {
			all, err := declared(ctx, c, "")
			return len(all) > 0, err
		},
		Absent:   ": start a worker that has it, such as `schedule worker`",
		Commands: commands(), Targets: targets, Findings: findings, Status: status, Metrics: metrics, Gather: gatherer(p),
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

// declared returns the schedulers of an app, or one of them, without their jobs.
func declared(ctx context.Context, c *store.Client, name string) (all []*scheduler, err error) {
	names := []string{name}
	if name == "" {
		if names, err = c.Streams(ctx); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		meta, there, err := c.LoadMeta(ctx, name)
		if err != nil {
			return nil, err
		}
		if there && meta.Kind == schedule.Kind {
			decoder := records.NewDecoder(name, meta, nil)
			all = append(all, &scheduler{schedule.New(c, name), name, meta.Partitions, decoder, nil})
		}
	}
	return all, nil
}

// load is declared, with their jobs.
func load(ctx context.Context, c *store.Client, name string) ([]*scheduler, error) {
	all, err := declared(ctx, c, name)
	for _, s := range all {
		if s.jobs, err = s.Ledger().Jobs(ctx); err != nil {
			return nil, err
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
	var names []string
	for _, s := range all {
		if s.name == name || name == "" && len(all) == 1 {
			return s, nil
		}
		names = append(names, s.name)
	}
	if name == "" && len(all) > 1 {
		return nil, extension.Usagef("which scheduler? say --%s %s", flagScheduler, strings.Join(names, "|"))
	}
	return nil, fmt.Errorf("no scheduler %q; there are %s", name, listed(names))
}

func listed(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }

// names returns the names of the jobs.
func (s *scheduler) names() []string { return slices.Sorted(maps.Keys(s.jobs)) }

// definitions returns what the jobs say.
func (s *scheduler) definitions() map[string]*jobs.Job {
	defs := map[string]*jobs.Job{}
	for name, j := range s.jobs {
		defs[name] = j.Def
	}
	return defs
}

// partition returns the partition of a source.
func (s *scheduler) partition(source string) int {
	n, _ := s.decoder.PartitionOf(source) // schedulers have no partitioner of their own
	return n
}

// A subject is what arguments name: a job, and perhaps a part of it, and a logical time.
type subject struct {
	*scheduler
	job  string
	def  *jobs.Job
	part string // a task, or a trigger; "" for the whole job
	at   time.Time
}

// find returns what JOB, JOB/TASK or JOB/TRIGGER names, as a word of a call has it: the TASK in brackets may be missing, and
// so may the JOB if there is one alone.
func (s *scheduler) find(on, word string) (*subject, error) {
	o := &subject{scheduler: s, job: on}
	if strings.Contains(word, "/") {
		o.job, o.part, _ = strings.Cut(on, "/")
	}
	names := s.names()
	if o.job == "" && len(names) == 1 {
		o.job = names[0]
	}
	j := s.jobs[o.job]
	switch {
	case j == nil && o.job == "":
		return nil, extension.Usagef("which job? there are %s", listed(names))
	case j == nil:
		return nil, fmt.Errorf("scheduler %s has no job %q; it has %s", s.name, o.job, listed(names))
	case o.part == "" && word == "JOB/TASK":
		return nil, extension.Usagef("which task? say JOB/TASK")
	}
	o.def = j.Def
	if tasks := o.tasks(); o.part != "" && strings.Contains(word, "TASK") && !slices.Contains(tasks, o.part) {
		return nil, fmt.Errorf("job %s has no task %q; it has %s", o.job, o.part, strings.Join(tasks, ", "))
	}
	return o, nil
}

// tasks returns the names of the tasks of the job.
func (o *subject) tasks() (names []string) {
	for i := range o.def.Tasks {
		names = append(names, o.def.Tasks[i].Name)
	}
	return names
}

// source returns a task of the job as Redis has it.
func (o *subject) source(task string) string { return jobs.Source{Job: o.job, Name: task}.String() }

// op returns an operation on the subject.
func (o *subject) op(kind string) *schedule.Op {
	op := &schedule.Op{Kind: kind, Job: o.job}
	if o.part != "" {
		op.Tasks = []string{o.part}
	}
	if !o.at.IsZero() {
		op.Time = o.at.UnixMilli()
	}
	return op
}
