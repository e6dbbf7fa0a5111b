package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Func is one run of a task. Its error may say more: runnel.RetryAfter, runnel.DeadLetter (no more attempts), Skip. ctx ends at the
// timeout (its cause is ErrTimeout), when the run was cleared, cancelled or taken over (ErrVoid), and when the worker stops, once the
// grace period is over (ErrInterrupted): such a run is repeated, uncounted. A panic is an error.
type Func func(ctx context.Context, r *Run) error

// A Run is one attempt of a task at a logical time.
type Run struct {
	Job, Task string
	Time      time.Time // the logical time, in UTC
	// Generation is how often the task has been fired at this time, Attempt counts within it. Together they grow: a fencing
	// token for other systems.
	Generation, Attempt int

	log *runLog // nil: of no worker
}

// String returns JOB/TASK and the time.
func (r *Run) String() string {
	return fmt.Sprintf("%s/%s at %s", r.Job, r.Task, r.Time.Format(time.RFC3339))
}

// Causes of the end of a run's context.
var (
	ErrTimeout     = errors.New("the timeout of the task is over")
	ErrVoid        = errors.New("the run counts no more: it was cleared, cancelled, or taken over")
	ErrInterrupted = errors.New("the worker stops")
)

// Skip returns an error with which a run is neither success nor failure: what waits for either waits on.
func Skip(why string) error { return &skip{why} }

type skip struct{ why string }

func (s *skip) Error() string { return "skipped: " + s.why }
