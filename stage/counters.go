package stage

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/sets"
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

// A shown has the sets of an app, whose counters its metrics tell.
type shown struct {
	mu   sync.Mutex
	sets []*set
}

// show registers the extension of sets with an app, once, and adds a set to what it shows.
func show(app *runnel.App, s *set) {
	var all *shown
	for _, e := range extension.Of(app) {
		if own, ok := e.Own.(*shown); ok {
			all = own
		}
	}
	if all == nil {
		all = &shown{}
		e := sets.New(all.gather)
		e.Own = all
		extension.Register(app, e)
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.sets = append(all.sets, s)
}

// gather adds what the stages of the sets have counted.
func (a *shown) gather(add func(set, stage string, visits map[string]int64, calls int64, spent time.Duration)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.sets {
		s.mu.Lock()
		stages := s.stages
		s.mu.Unlock()
		for _, one := range stages {
			visits := map[string]int64{}
			for r := range results {
				visits[r.String()] = one.count.by[r].Load()
			}
			add(s.name, one.name, visits, one.count.calls.Load(), time.Duration(one.count.spent.Load()))
		}
	}
}
