package schedule

import (
	"context"
	"time"
)

// A Due is a trigger, or what catches up, that is due.
type Due struct {
	ID, Rule, Position string
}

// Due returns what is due in the heap of a partition, at most so many, the server's time, and how long until the next is due: 0 if
// more are, negative if none waits.
func (s *Scheduler) Due(ctx context.Context, n, most int) (due []Due, now time.Time, next time.Duration, err error) {
	r, err := s.do(ctx, dueScript, n, most)
	if err != nil {
		return nil, now, 0, err
	}
	now, next = time.UnixMilli(r.number()), time.Duration(r.number())*time.Millisecond
	for r.more() {
		due = append(due, Due{r.text(), r.text(), r.text()})
	}
	return due, now, next, r.err
}

// A Fire goes on with what is due, unless it has changed since.
type Fire struct {
	Due
	To      string    // its new position
	Next    time.Time // when it goes on, zero: never
	Over    bool      // it is forgotten
	Omitted int64     // times that are left out
	Source  string    // whose times are these
	Times   []int64   // in ms, for which it has ended
	Class   int64     // priority, or Own
	CatchUp *Due      // goes on beside it

	Done bool // false: it had changed
}

// Fire fires what is due in a partition: together at most PerCall times.
func (s *Scheduler) Fire(ctx context.Context, n int, fence string, fires ...*Fire) error {
	args := []any{fence}
	for _, f := range fires {
		next := any("")
		if f.Over {
			next = "x"
		} else if !f.Next.IsZero() {
			next = f.Next.UnixMilli()
		}
		args = append(args, f.ID, f.Rule, f.Position, f.To, next, f.Omitted)
		if f.CatchUp != nil {
			args = append(args, f.CatchUp.ID, f.CatchUp.Rule, f.CatchUp.Position)
		} else {
			args = append(args, "", "", "")
		}
		args = append(args, f.Source, f.Class, len(f.Times))
		for _, t := range f.Times {
			args = append(args, t)
		}
	}
	r, err := s.do(ctx, fireScript, n, args...)
	if err != nil {
		return err
	}
	for _, f := range fires {
		f.Done = r.number() == 1
	}
	return r.err
}
