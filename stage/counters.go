package stage

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/sets"
	istage "github.com/runnel-go/runnel/internal/stage"
	"github.com/runnel-go/runnel/internal/worker"
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
	by [results]atomic.Int64

	mu          sync.Mutex
	spent, late worker.Histogram // of calls of the function; nil classes before the first
}

// called counts a call of the function, which took so long and began so long after the visit was due.
func (c *counters) called(took, late time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spent.Counts == nil {
		c.spent, c.late = worker.NewHistogram(worker.HandlerBounds), worker.NewHistogram(worker.DelayBounds)
	}
	c.spent.Add(took)
	c.late.Add(max(late, 0))
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

// A shown has the sets of an app, whose counters its metrics tell.
type shown struct {
	app *runnel.App

	mu   sync.Mutex
	sets []*set
}

// show registers the extension of sets with an app, once, and adds a set to what it shows.
func show(app *runnel.App, s *set) {
	all := extension.Own(app, func() (*shown, *extension.Extension) {
		all := &shown{app: app}
		return all, sets.New(all)
	})
	all.mu.Lock()
	defer all.mu.Unlock()
	all.sets = append(all.sets, s)
}

// Declares reports whether the app's code has a stage.
func (a *shown) Declares(name, stage string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.sets, func(s *set) bool { return s.name == name && slices.Contains(s.names(), stage) })
}

// Streams returns what the app declares.
func (a *shown) Streams() ([]*appview.Stream, error) { return appview.Of(a.app).Streams() }

// Count adds what the stages of the sets have counted.
func (a *shown) Count(add func(sets.Counted)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.sets {
		s.mu.Lock()
		stages := s.stages
		s.mu.Unlock()
		for _, one := range stages {
			add(one.count.of(s.name, one.name))
		}
	}
}

func (c *counters) of(set, stage string) sets.Counted {
	out := sets.Counted{Set: set, Stage: stage, Visits: map[string]int64{}}
	for r := range results {
		out.Visits[r.String()] = c.by[r].Load()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	out.Spent, out.Late = c.spent.Clone(), c.late.Clone()
	return out
}
