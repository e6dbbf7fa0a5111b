package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runnel-go/runnel/internal/jobs"
	ischedule "github.com/runnel-go/runnel/internal/schedule"
)

// OpOptions say who asks for an operation. All fields are optional.
type OpOptions struct {
	ID      string // operations of the same ID are one; default: each is another
	By, Why string
	For     time.Duration // of Pause: it ends by itself
	Force   bool          // of Remove: although tasks of other jobs wait for those of the job
}

// An Op is an operation that is stored: a worker does it, in the order in which they were asked for.
type Op struct {
	ID     string
	Number int64

	s *Scheduler
}

// A RefusedError is returned by Op.Wait for an operation that did nothing: Reason says why.
type RefusedError = ischedule.RefusedError

// Wait blocks until a worker has done the operation, or ctx ends, and returns what it did. The error may be a *RefusedError.
func (op *Op) Wait(ctx context.Context) (outcome string, err error) {
	done := &ischedule.Op{Number: op.Number}
	if err := op.s.calls.Ledger().WaitOp(ctx, done); err != nil {
		return "", err
	}
	return done.Outcome, nil
}

func (s *Scheduler) ask(ctx context.Context, op *ischedule.Op, o *OpOptions) (*Op, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if o != nil {
		op.ID, op.By, op.Why, op.For, op.Force = o.ID, o.By, o.Why, jobs.Duration(o.For), o.Force
	}
	n, err := s.calls.Ledger().Submit(ctx, op)
	if err != nil {
		return nil, fmt.Errorf("scheduler %s: %s of job %s: %w", s.name, op.Kind, op.Job, err)
	}
	return &Op{ID: op.ID, Number: n, s: s}, nil
}

// Apply puts a job in place of the one of that name, or adds it. Runs under way go on; logical times that have begun keep what they wait
// for. A job whose tasks have a Do is known to those workers alone whose code has it. The operation is refused if a source is not there,
// or if tasks of all jobs would wait for each other in a circle.
func (s *Scheduler) Apply(ctx context.Context, name string, job Job, o *OpOptions) (*Op, error) {
	stored, err := job.checked(name)
	if err != nil {
		return nil, err
	}
	op, err := ischedule.ApplyOp(stored)
	if err != nil {
		return nil, err
	}
	return s.ask(ctx, op, o)
}

// Remove removes a job: what waits is void, what runs may end. It is refused while tasks of other jobs wait for those of the job.
func (s *Scheduler) Remove(ctx context.Context, job string, o *OpOptions) (*Op, error) {
	return s.ask(ctx, &ischedule.Op{Kind: ischedule.OpRemove, Job: job}, o)
}

// Pause has the triggers of a job not fire and nothing of it start, until Resume or, with OpOptions.For, for a time. What runs goes on.
func (s *Scheduler) Pause(ctx context.Context, job string, o *OpOptions) (*Op, error) {
	return s.ask(ctx, &ischedule.Op{Kind: ischedule.OpPause, Job: job}, o)
}

// Resume ends a pause. Times that were missed meanwhile are caught up as their trigger says; what was held starts, once each.
func (s *Scheduler) Resume(ctx context.Context, job string, o *OpOptions) (*Op, error) {
	return s.ask(ctx, &ischedule.Op{Kind: ischedule.OpResume, Job: job}, o)
}

// An Activation is tasks of a job at a logical time, and all that hangs on them.
type Activation struct {
	Job      string
	Tasks    []string // names; none: those that hang on triggers
	Time     time.Time
	Only     bool     // without what hangs on them
	Priority Priority // default PriorityHigh
}

func (s *Scheduler) activate(ctx context.Context, kind string, a *Activation, o *OpOptions) (*Op, error) {
	if a.Time.UnixMilli() < 0 {
		return nil, errors.New("the logical time is missing, or before 1970")
	}
	priority := jobs.Priority(cmp.Or(a.Priority, PriorityHigh))
	return s.ask(ctx, &ischedule.Op{Kind: kind, Job: a.Job, Tasks: a.Tasks, Time: a.Time.UTC(), Only: a.Only, Priority: priority}, o)
}

// Activate runs tasks now, done or not, and then what hangs on them: what is queued or runs of these is void.
func (s *Scheduler) Activate(ctx context.Context, a Activation, o *OpOptions) (*Op, error) {
	return s.activate(ctx, ischedule.OpActivate, &a, o)
}

// Clear makes void what tasks have at a time, and what hangs on them, and runs nothing. Tokens that come later fire them again.
func (s *Scheduler) Clear(ctx context.Context, a Activation, o *OpOptions) (*Op, error) {
	return s.activate(ctx, ischedule.OpClear, &a, o)
}

// Cancel ends a run: it counts no more, its context ends with ErrVoid, and nothing follows from it.
func (s *Scheduler) Cancel(ctx context.Context, job, task string, t time.Time, o *OpOptions) (*Op, error) {
	return s.ask(ctx, &ischedule.Op{Kind: ischedule.OpCancel, Job: job, Tasks: []string{task}, Time: t.UTC()}, o)
}

// A Backfill is logical times of a trigger that are to run unless they have.
type Backfill struct {
	Job, Trigger string    // the trigger may be left out where there is one
	From, To     time.Time // To exclusive
	Latest       bool      // the newest first
	Priority     Priority  // default PriorityBackfill
}

// Backfill runs past times. What has run does not run again, so it may be repeated; but a time that the history has forgotten counts as
// one that has not run.
func (s *Scheduler) Backfill(ctx context.Context, b Backfill, o *OpOptions) (*Op, error) {
	if b.From.UnixMilli() < 0 || !b.From.Before(b.To) {
		return nil, fmt.Errorf("a backfill from %v to %v has no time", b.From, b.To)
	}
	op := &ischedule.Op{
		Kind: ischedule.OpBackfill, Job: b.Job, Trigger: b.Trigger, From: b.From.UTC(), To: b.To.UTC(), Order: jobs.CatchUpEarliest,
		Priority: jobs.Priority(cmp.Or(b.Priority, PriorityBackfill)),
	}
	if b.Latest {
		op.Order = jobs.CatchUpLatest
	}
	return s.ask(ctx, op, o)
}
