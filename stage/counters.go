package stage

import (
	"sync/atomic"
	"time"

	istage "github.com/runnel-go/runnel/internal/stage"
)

// A result is what became of a visit.
type result int

const (
	untouched result = iota
	updated
	deleted
	failed
	dead
	conflict
	gone
	dropped
	results // how many there are
)

// String returns the name of the result, as metrics have it.
func (r result) String() string {
	return [results]string{"untouched", "updated", "deleted", "failed", "dead", "conflict", "gone", "dropped"}[r]
}

// counters count the visits of one stage.
type counters struct {
	by    [results]atomic.Int64
	calls atomic.Int64 // of the function
	spent atomic.Int64 // in them, ns
}

func (c *counters) took(d time.Duration) {
	c.calls.Add(1)
	c.spent.Add(int64(d))
}

// setCounters count what is not one stage's.
type setCounters struct {
	takes, passes, trips, fenced, dropped atomic.Int64
}

func (s *set) counted(stage string, r result) {
	if one := s.by[stage]; one != nil {
		one.count.by[r].Add(1)
	} else if stage != istage.Touch {
		s.count.dropped.Add(1)
	}
}
