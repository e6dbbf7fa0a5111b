package schedule

import (
	"slices"
	"sync"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/extension"
	ischedule "github.com/runnel-go/runnel/internal/schedule"
	"github.com/runnel-go/runnel/internal/schedulers"
	"github.com/runnel-go/runnel/internal/worker"
)

// A shown has the schedulers of an app, whose counters its metrics tell.
type shown struct {
	mu  sync.Mutex
	all []*Scheduler
}

// show registers the extension with an app, once, and adds a scheduler to what it shows.
func show(app *runnel.App, s *Scheduler) {
	all := extension.Own(app, func() (*shown, *extension.Extension) {
		all := &shown{}
		return all, schedulers.New(all)
	})
	all.mu.Lock()
	defer all.mu.Unlock()
	all.all = append(all.all, s)
}

// Count adds what the crews have counted.
func (a *shown) Count(add func(schedulers.Counted)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.all {
		s.crew.count.each(func(task string, c *counted) {
			source := (&run{Run: ischedule.Run{Task: task}}).source()
			of := schedulers.Counted{Scheduler: s.name, Job: source.Job, Task: source.Name, Ends: map[string]int64{}, Spent: c.spent}
			of.Spent.Counts = slices.Clone(c.spent.Counts)
			for result, n := range c.ends {
				of.Ends[result] = n
			}
			add(of)
		})
	}
}

// counters count the attempts of a worker by task.
type counters struct {
	mu sync.Mutex
	by map[string]*counted
}

type counted struct {
	ends  map[string]int64
	spent worker.Histogram
}

// refused counts ends that came too late: the run had been taken over, cleared or cancelled.
const refused = "refused"

// add counts the end of an attempt.
func (c *counters) add(e *ischedule.End, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string]*counted{}
	}
	of := c.by[e.Task]
	if of == nil {
		of = &counted{ends: map[string]int64{}, spent: worker.Histogram{Bounds: worker.HandlerBounds, Counts: make([]int64, len(worker.HandlerBounds)+1)}}
		c.by[e.Task] = of
	}
	result := e.Result
	if !e.Accepted {
		result = refused
	}
	of.ends[result]++
	i, _ := slices.BinarySearch(worker.HandlerBounds, took)
	of.spent.Counts[i]++
	of.spent.Sum += took
}

func (c *counters) each(do func(task string, of *counted)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for task, of := range c.by {
		do(task, of)
	}
}
