package schedule

import (
	"context"
	"time"
)

// A Due is a trigger, or what catches up, that is due.
type Due struct {
	ID       string `json:"id"`
	Rule     string `json:"rule"`
	Position int64  `json:"position,string"`
	Paused   bool   `json:"paused,omitempty"` // to Define: it waits
}

// Due returns what is due in the heap of a partition, at most so many, the server's time, and how long until the next is due: 0 if
// more are, negative if none waits.
func (s *Scheduler) Due(ctx context.Context, n, most int) (due []Due, now time.Time, next time.Duration, err error) {
	var r struct {
		Now, Next int64
		Due       []Due
	}
	err = s.do(ctx, "due", n, obj{"most": most}, &r)
	return r.Due, time.UnixMilli(r.Now), time.Duration(r.Next) * time.Millisecond, err
}

// A Fire goes on with what is due, unless it has changed since.
type Fire struct {
	Due
	To      int64   `json:"to"`                // its new position
	Next    int64   `json:"next"`              // when it goes on, in ms, 0: never
	Over    bool    `json:"over"`              // it is forgotten
	Omitted int64   `json:"omitted"`           // times that are left out
	Source  string  `json:"source"`            // whose times are these
	Times   []int64 `json:"times"`             // in ms, for which it has ended
	Class   int64   `json:"class"`             // priority, or Own
	CatchUp *Due    `json:"catchUp,omitempty"` // goes on beside it

	Done bool `json:"-"` // false: it had changed
}

// Fire fires what is due in a partition: together at most PerCall times.
func (s *Scheduler) Fire(ctx context.Context, n int, fence string, fires ...*Fire) error {
	var done []bool
	err := s.do(ctx, "fire", n, obj{"fence": fence, "fires": fires}, &done)
	for i := range done {
		fires[i].Done = done[i]
	}
	return err
}
