package extension

import "github.com/runnel-go/runnel/internal/worker"

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
