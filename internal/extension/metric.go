package extension

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/worker"
)

// A Metric is exported as runnel_<extension>_<Name>, or as runnel_app_<extension>_<Name> if it is of the app as a
// whole.
type Metric struct {
	Name, Help string // counters end in _total, times in _seconds, bytes in _bytes; what is stored begins with stored_
	Kind       Kind
	Labels     []string // in alphabetical order; the label app stands before them
	OfApp      bool     // of the app as a whole, by a look at Redis: the dashboard serves it, workers do not
}

// A Kind is the type of a metric.
type Kind string

// Kinds of metrics.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// A Sample is the value of one series of a metric.
type Sample struct {
	*Metric
	Labels    []string // the values of Metric.Labels
	Value     float64  // of a counter or a gauge
	Histogram *worker.Histogram
}

// Counters are what a process counts for metrics. The zero value has counted nothing, and so has nil. Methods may be called concurrently.
type Counters struct {
	mu  sync.Mutex
	all map[string]*Sample
}

// Add counts one more of the series with the labels.
func (c *Counters) Add(m *Metric, labels ...string) {
	c.AddMore(m, 1, labels...)
}

// AddMore counts n more of the series with the labels.
func (c *Counters) AddMore(m *Metric, n int, labels ...string) {
	c.change(m, labels, func(s *Sample) { s.Value += float64(n) })
}

// Observe counts a call of a function that took so long.
func (c *Counters) Observe(m *Metric, took time.Duration, labels ...string) {
	c.change(m, labels, func(s *Sample) {
		if s.Histogram == nil {
			h := worker.NewHistogram(worker.HandlerBounds)
			s.Histogram = &h
		}
		s.Histogram.Add(took)
	})
}

func (c *Counters) change(m *Metric, labels []string, how func(s *Sample)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[string]*Sample{}
	}
	series := m.Name + "\n" + strings.Join(labels, "\n")
	if c.all[series] == nil {
		c.all[series] = &Sample{Metric: m, Labels: slices.Clone(labels)}
	}
	how(c.all[series])
}

// Each calls add with what was counted.
func (c *Counters) Each(add func(Sample)) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.all {
		s := *one
		if s.Histogram != nil {
			h := s.Histogram.Clone()
			s.Histogram = &h
		}
		add(s)
	}
}

// Gatherer returns an Extension.Gather of what a process has counted, and of what stored adds for the app as a whole.
func Gatherer(
	counted *Counters, stored func(ctx context.Context, c *store.Client, add func(Sample)) error,
) func(context.Context, *store.Client, bool, func(Sample)) error {
	return func(ctx context.Context, c *store.Client, ofApp bool, add func(Sample)) error {
		if ofApp {
			return stored(ctx, c, add)
		}
		counted.Each(add)
		return nil
	}
}
