// Package schedulers is what operators see and do of schedulers: the extension of package schedule. It knows schedulers by what is in
// Redis alone, so that it works without the code of their app. By file:
//
//	schedulers.go  the extension; which schedulers an app has
//	commands.go    the commands and their flags
//	look.go        ls, show, next, runs
//	grid.go        the grid of tasks and times
//	ask.go         apply, rm, activate, clear, cancel, backfill, ops
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
			all, err := load(ctx, c, "")
			return len(all) > 0, err
		},
		Absent:   ": start a worker that has it, such as `schedule worker`",
		Commands: commands(), Targets: targets, Findings: findings, Status: status, Metrics: metrics, Gather: gatherer(p), Page: page(),
	}
}

// A scheduler is one of an app, as its metadata has it.
type scheduler struct {
	*schedule.Scheduler
	name       string
	partitions int
	at         *records.Decoder
}

// load returns the schedulers of an app, or one of them.
func load(ctx context.Context, c *store.Client, name string) (all []*scheduler, err error) {
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
			all = append(all, &scheduler{schedule.New(c, name), name, meta.Partitions, records.NewDecoder(name, meta, nil)})
		}
	}
	return all, nil
}

// flagScheduler names the scheduler, where an app has several.
const flagScheduler = "scheduler"

// one returns the scheduler that the flags name, or the only one.
func one(ctx context.Context, env *extension.Env) (*scheduler, error) {
	name := env.Flags.String(flagScheduler)
	all, err := load(ctx, env.Client, "")
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
	return nil, fmt.Errorf("no scheduler %q; there are %s", name, cmp.Or(strings.Join(names, ", "), "none"))
}

// partition returns the partition of a source.
func (s *scheduler) partition(source string) int {
	n, _ := s.at.PartitionOf(source) // schedulers have no partitioner of their own
	return n
}

// job returns a stored job, or the only one for "".
func (s *scheduler) job(ctx context.Context, name string) (*schedule.Job, error) {
	all, err := s.Ledger().Jobs(ctx)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(all))
	if name == "" && len(names) == 1 {
		name = names[0]
	}
	switch j := all[name]; {
	case j != nil:
		return j, nil
	case name == "":
		return nil, extension.Usagef("which job? there are %s", cmp.Or(strings.Join(names, ", "), "none"))
	}
	return nil, fmt.Errorf("scheduler %s has no job %q; it has %s", s.name, name, cmp.Or(strings.Join(names, ", "), "none"))
}

// splitPart splits JOB/TASK.
func splitPart(text string) (job, part string) {
	job, part, _ = strings.Cut(text, "/")
	return job, part
}

// taskOf returns a task of a job, or an error that lists those that there are.
func taskOf(j *schedule.Job, name string) (*jobs.Task, error) {
	var names []string
	for i := range j.Def.Tasks {
		if j.Def.Tasks[i].Name == name {
			return &j.Def.Tasks[i], nil
		}
		names = append(names, j.Def.Tasks[i].Name)
	}
	return nil, fmt.Errorf("job %s has no task %q; it has %s", j.Def.Name, name, strings.Join(names, ", "))
}

// graph returns how the tasks of all jobs hang together.
func (s *scheduler) graph(ctx context.Context) (*jobs.Graph, map[string]*schedule.Job, error) {
	all, err := s.Ledger().Jobs(ctx)
	if err != nil {
		return nil, nil, err
	}
	defs := map[string]*jobs.Job{}
	for name, j := range all {
		defs[name] = j.Def
	}
	graph, _ := jobs.NewGraph(defs)
	return graph, all, nil
}
