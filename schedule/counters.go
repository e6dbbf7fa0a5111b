package schedule

import (
	"sync"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/jobs"
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
func (a *shown) Count(add func(extension.Sample)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.all {
		s.crew.count.each(s.name, add)
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
		of = &counted{map[string]int64{}, worker.NewHistogram(worker.HandlerBounds)}
		c.by[e.Task] = of
	}
	result := e.Result
	if !e.Accepted {
		result = refused
	}
	of.ends[result]++
	of.spent.Add(took)
}

func (c *counters) each(scheduler string, add func(extension.Sample)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for task, of := range c.by {
		s, _ := jobs.ParseSource(task)
		for result, n := range of.ends {
			add(extension.Sample{Metric: schedulers.Ends, Labels: []string{s.Job, result, scheduler, s.Name}, Value: float64(n)})
		}
		spent := of.spent.Clone()
		add(extension.Sample{Metric: schedulers.Spent, Labels: []string{s.Job, scheduler, s.Name}, Histogram: &spent})
	}
}
