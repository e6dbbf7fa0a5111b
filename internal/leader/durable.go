package leader

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/store"
)

const (
	// catchUpMost is how many missed times CatchUpAll runs at most.
	catchUpMost = 1000
	// clockEvery is how long one reading of the server's time is used.
	clockEvery = time.Minute
)

// How due times without a leader are handled.
const (
	CatchUpOnce = iota // one run for all of them, with the latest
	CatchUpNone        // none
	CatchUpAll         // one run for each, in order
)

// An occasion is why a durable task looks at its due times.
type occasion int

const (
	begins occasion = iota // the term begins: there may have been no leader
	wakes                  // it waited for the due time
	ran                    // it has just run
)

// plan picks from due times that have passed, the oldest first, those to run. Due times that passed
// while the task itself ran are skipped, as everywhere, except under CatchUpAll.
func plan(catchUp int, o occasion, due []time.Time) []time.Time {
	switch {
	case len(due) == 0 || catchUp == CatchUpAll:
		return due
	case o == wakes, catchUp == CatchUpOnce && o == begins:
		return due[len(due)-1:]
	}
	return nil
}

// passed returns the due times after last up to now, the oldest first: the latest
// catchUpMost of them. It also reports whether there were older ones. next returns the
// first due time after a time.
func passed(next func(time.Time) time.Time, last, now time.Time) (due []time.Time, older bool) {
	for window := time.Minute; ; window *= 4 {
		from := now.Add(-window)
		all := !from.After(last) || window > 1<<60
		if all {
			from = last
		}
		due = due[:0]
		for at := next(from); !at.IsZero() && !at.After(now); at = next(at) {
			due = append(due, at)
		}
		if all || len(due) > catchUpMost {
			extra := max(0, len(due)-catchUpMost)
			return due[extra:], extra > 0 || !all
		}
	}
}

// A durable is a durable task during one term of leadership.
type durable struct {
	s     *Tasks
	t     *Task
	token string // in the leader's lock

	last   time.Time // the last due time that was claimed
	server time.Time // the server's time …
	at     int64     // … at this moment, by monotime, or a little later

	retry *outage.Outage
}

// runDurable runs a task at its due times until ctx ends. Each due time has at most one
// run, over all workers: it is claimed before the run.
func (s *Tasks) runDurable(ctx context.Context, t *Task, token string) {
	d := &durable{s: s, t: t, token: token, retry: outage.New(s.Log.With("task", t.Name), "durable task", s.Errors)}
	if !d.mark(ctx, func() (store.TaskMark, error) { return s.Store.LookAtTask(ctx, token, t.Name) }) {
		return
	}
	for o := begins; ctx.Err() == nil; {
		due, older := passed(d.next, d.last, d.now())
		if len(due) > 0 {
			o = d.round(ctx, o, due, older)
			continue
		}
		at := d.next(d.last)
		if at.IsZero() {
			return
		}
		d.sleep(ctx, at)
		o = wakes
	}
}

// round runs the planned due times among those that have passed, and stores the others as done.
func (d *durable) round(ctx context.Context, o occasion, due []time.Time, older bool) occasion {
	run := plan(d.t.CatchUp, o, due)
	if len(run) < len(due) || older {
		d.s.Log.Info("due times left out", "task", d.t.Name,
			"missed", len(due)-len(run), "older", older, "due", due[0], "runs", len(run))
	}
	// Redis may have returned to a state before some of the claims.
	known := d.s.claimed.of(d.t.Name)
	if i := slices.IndexFunc(run, known.Before); i != 0 && len(run) > 0 {
		if i < 0 {
			i = len(run)
		}
		d.s.Log.Error("due times forgotten by redis", "task", d.t.Name,
			"missed", i, "due", run[0], "help", help.EventsMayBeGone)
		run = run[i:]
	}
	for _, at := range run {
		if !d.claim(ctx, at) {
			return o
		}
		if ctx.Err() == nil {
			d.s.callTask(ctx, d.t, at)
		}
	}
	latest := due[len(due)-1]
	if d.last.Before(latest) && !d.claim(ctx, latest) {
		return o
	}
	if len(run) == 0 {
		return wakes
	}
	return ran
}

// claim claims a due time, and reports whether this worker may run it.
func (d *durable) claim(ctx context.Context, due time.Time) bool {
	last, claimed := d.last, false
	known := d.mark(ctx, func() (store.TaskMark, error) {
		m, err := d.s.Store.ClaimTask(ctx, d.token, d.t.Name, last, due)
		claimed = m.Claimed
		return m, err
	})
	if known && claimed {
		d.s.claimed.note(d.t.Name, due)
		return true
	}
	return false
}

// A claims holds the latest due time of each durable task that this process has claimed, over all
// terms. No due time up to it runs again here, whatever Redis forgets.
type claims struct {
	mu   sync.Mutex
	last map[string]time.Time
}

func (c *claims) of(task string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last[task]
}

func (c *claims) note(task string, due time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = map[string]time.Time{}
	}
	if due.After(c.last[task]) {
		c.last[task] = due
	}
}

// mark repeats a request until Redis answers, and reports whether it did before ctx ended.
func (d *durable) mark(ctx context.Context, ask func() (store.TaskMark, error)) bool {
	for ctx.Err() == nil {
		m, err := ask()
		switch {
		case err == nil:
			d.retry.Recovered()
			d.last, d.server, d.at = m.Last, m.Now, monotime.Now()
			return true
		case errors.Is(err, store.ErrFenced):
			<-ctx.Done() // another worker leads: the term is about to end
			return false
		}
		d.retry.Wait(ctx, err)
	}
	return false
}

// now returns the server's time, or a little less.
func (d *durable) now() time.Time { return d.server.Add(time.Duration(monotime.Now() - d.at)) }

// sleep waits until a due time, but at most clockEvery; then it reads the server's time again.
func (d *durable) sleep(ctx context.Context, due time.Time) {
	wait := due.Sub(d.now())
	if monotime.Sleep(ctx, min(wait, clockEvery)) && wait > clockEvery {
		d.mark(ctx, func() (store.TaskMark, error) { return d.s.Store.LookAtTask(ctx, d.token, d.t.Name) })
	}
}

// next returns the first due time after a time. Due times of an interval continue from
// the last one.
func (d *durable) next(after time.Time) time.Time {
	if d.t.Every > 0 {
		n := max(0, after.Sub(d.last)) / d.t.Every
		return d.last.Add((n + 1) * d.t.Every)
	}
	return d.s.due(d.t, after)
}
