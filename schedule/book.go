package schedule

import (
	"context"
	"fmt"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/jobs"
	"github.com/runnel-go/runnel/internal/retryqueue"
	ischedule "github.com/runnel-go/runnel/internal/schedule"
)

// A book is what this worker knows of the stored jobs. A run says by which operation its task was defined: one that the book has not
// heard of yet has it read again.
type book struct {
	busy  chan struct{} // has one token while jobs are looked up; a mutex would not heed contexts
	at    time.Time     // of the last read
	tasks map[string]*taskOf
}

// A taskOf is a task as this worker runs it.
type taskOf struct {
	jobs.Task
	rev   int64
	retry *retryqueue.Retry // nil: one attempt
}

// bookAge is how often jobs are read where definitions are being replaced.
const bookAge = 100 * time.Millisecond

// wait is how long a run waits behind an attempt that failed.
func (t *taskOf) wait(r *run) time.Duration {
	if t.retry == nil {
		return -1
	}
	return t.retry.Wait(int(r.Failed) + 1)
}

// taskOf returns the task of a run and the function that does it; without one the error says why.
func (s *Scheduler) taskOf(ctx context.Context, r *run) (*taskOf, Func, error) {
	b := &s.book
	select {
	case b.busy <- struct{}{}:
		defer func() { <-b.busy }()
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	task := b.tasks[r.Task]
	if task == nil || task.rev < r.Rev || task.rev > r.Rev && time.Since(b.at) > bookAge { // another one, if only because Redis has forgotten everything
		if err := s.read(ctx, r); err != nil {
			return nil, nil, err
		}
		if task = s.book.tasks[r.Task]; task == nil {
			return nil, nil, fmt.Errorf("task %s is defined no more", r.Task)
		}
	}
	if task.Handler == "" {
		if s.opts.Exec == nil {
			return nil, nil, fmt.Errorf("task %s is a command, and this worker runs none", r.Task)
		}
		return task, s.command(task), nil
	}
	fn := s.handlers[task.Handler]
	if fn == nil {
		return nil, nil, fmt.Errorf("this worker has no function %q", task.Handler)
	}
	return task, fn, nil
}

// read reads the jobs anew. That of the run may still be in its operation: partitions know a job before it is stored.
func (s *Scheduler) read(ctx context.Context, r *run) error {
	op, err := s.calls.Ledger().Op(ctx, r.Rev) // before the jobs: once they are stored, it has them no more
	if err != nil {
		return err
	}
	all, err := s.calls.Ledger().Jobs(ctx)
	if err != nil {
		return err
	}
	if j := all[r.source.Job]; op != nil && (j == nil || j.Rev < r.Rev) {
		for _, def := range op.Defs {
			if def.Name == r.source.Job {
				all[def.Name] = &ischedule.Job{Rev: r.Rev, Def: def}
			}
		}
	}
	tasks := map[string]*taskOf{}
	for name, j := range all {
		for _, t := range j.Def.Tasks {
			one := &taskOf{Task: t, rev: j.Rev}
			if r := t.Retry; r != nil {
				one.retry, err = s.inherited.Retry(&runnel.Retry{
					Max: r.Max, MinBackoff: time.Duration(r.MinBackoff), MaxBackoff: time.Duration(r.MaxBackoff), Factor: r.Factor, Jitter: r.Jitter,
				}, 1)
				if err != nil {
					return fmt.Errorf("job %s: task %s: %w", name, t.Name, err)
				}
			}
			tasks[jobs.Source{Job: name, Name: t.Name}.String()] = one
		}
	}
	s.book.tasks, s.book.at = tasks, time.Now()
	return nil
}
