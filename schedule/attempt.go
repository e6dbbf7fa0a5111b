package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/retryqueue"
	ischedule "github.com/runnel-go/runnel/internal/schedule"
	"github.com/runnel-go/runnel/internal/verdict"
)

// attempt calls the function of a run and judges its error. The channel is closed when the function has returned, which may be
// later.
func (c *crew) attempt(ctx context.Context, r *run) (*ischedule.End, <-chan struct{}) {
	task, fn, err := c.s.taskOf(ctx, r)
	if fn == nil {
		c.tellNoHandler(r, err)
		return &ischedule.End{Run: &r.Run, Result: ischedule.Interrupted, Wait: handBack}, closed
	}
	limit := cmp.Or(time.Duration(task.Timeout), c.s.opts.Timeout)
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, ErrTimeout)
		defer cancel()
	}
	patience := stuckAfter
	if task.Handler == "" {
		patience += killAfter
	}
	returned, err := c.call(ctx, fn, r, patience)
	return c.judge(r, task, err, context.Cause(ctx)), returned
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// judge says what follows from the error of a function whose context has ended for a cause.
func (c *crew) judge(r *run, task *taskOf, err, cause error) *ischedule.End {
	e, v := &ischedule.End{Run: &r.Run}, verdict.Of(err)
	switch {
	case err == nil:
		e.Result = ischedule.Success
		return e
	case errors.Is(cause, ErrVoid) || errors.Is(cause, ErrInterrupted):
		e.Result = ischedule.Interrupted
		return e
	case errors.As(err, new(*skip)) || v.Kind == verdict.Drop:
		e.Result, e.Error = ischedule.Skipped, retryqueue.ErrorText(err)
		return e
	case errors.Is(cause, ErrTimeout):
		e.Result, e.Error, e.Wait = ischedule.Timeout, retryqueue.ErrorText(ErrTimeout), task.wait(r)
	default:
		e.Result, e.Error, e.Wait = ischedule.Failed, retryqueue.ErrorText(err), task.wait(r)
	}
	switch v.Kind {
	case verdict.Retry:
		e.Wait = v.After
	case verdict.Dead:
		e.Wait = -1
	}
	c.s.log.Warn("run failed", "job", r.source.Job, "task", r.source.Name, "time", r.at(), "attempt", r.Attempt, "err", e.Error)
	return e
}

// handBack is how long a run waits that this worker has no function for.
const handBack = 5 * time.Second

// call calls a function; its panic is an error. It returns soon once the context has ended, even if the function does not; the channel is
// closed when that has.
func (c *crew) call(ctx context.Context, fn Func, r *run, patience time.Duration) (returned <-chan struct{}, err error) {
	done, log := make(chan struct{}), newRunLog(c.s, r)
	var result error // once it is done
	go func() {
		defer close(done)
		defer log.close()
		defer func() {
			if p := recover(); p != nil {
				result = fmt.Errorf("panic: %v", p)
				c.s.log.Error("function panicked", "job", r.source.Job, "task", r.source.Name, "time", r.at(), "err", result, "stack", string(debug.Stack()))
			}
		}()
		result = fn(ctx, r.public(log))
	}()
	select {
	case <-done:
		return done, result
	case <-ctx.Done():
	}
	select {
	case <-done:
		return done, result
	case <-time.After(patience):
		c.s.log.Error("function is stuck", "job", r.source.Job, "task", r.source.Name, "time", r.at(), "after", patience, "help", help.FunctionStuck)
		return done, fmt.Errorf("the function did not return: %w", context.Cause(ctx))
	}
}

// tellNoHandler logs, once a minute, that this worker has no function for a task.
func (c *crew) tellNoHandler(r *run, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.handed[r.Task]) < time.Minute {
		return
	}
	c.handed[r.Task] = time.Now()
	c.s.log.Warn("run handed back", "job", r.source.Job, "task", r.source.Name, "time", r.at(), "err", err)
}

// An ending is the end of a run on its way.
type ending struct {
	ischedule.End
	partition int
}

// finish stores the end of a run, again until its outcome is known: repeated, it does no harm.
func (c *crew) finish(e *ending) {
	outage.Retry(c.calls, c.s.log, "ends of runs", func() error {
		e.Err = nil
		c.ends.Do(c.calls, e)
		return e.Err
	})
}

// send stores the ends of one round trip.
func (c *crew) send(ctx context.Context, all []*ending) {
	by := map[int][]*ischedule.End{}
	for _, e := range all {
		by[e.partition] = append(by[e.partition], &e.End)
	}
	c.s.calls.Finish(ctx, by)
}
