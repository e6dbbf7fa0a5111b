// Package families lists the metrics of an app, and gathers their values. Package metrics writes
// them as text; package metrics/collector hands them to a registry.
package families

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/worker"
)

// A Family is a metric with all its series.
type Family struct {
	Name, Help string
	Kind       Kind
	Labels     []string // in alphabetical order; the first is app
}

// A Kind is the type of a metric, as the text format names it.
type Kind = extension.Kind

// Kinds of metrics.
const (
	Counter   = extension.Counter
	Gauge     = extension.Gauge
	Histogram = extension.Histogram
)

// A Sample is the value of one series.
type Sample struct {
	*Family
	Values    []string // of the labels, in their order
	Value     float64  // of a counter or a gauge
	Histogram *worker.Histogram
}

// A Source gathers metrics. Its methods may be called concurrently.
type Source interface {
	// Families returns the metrics that the source may have.
	Families() []*Family
	// Gather calls add with each series, family by family. If Redis does not answer, the series
	// that come from Redis are missing.
	Gather(add func(Sample))
}

var all []*Family

// All returns every family.
func All() []*Family { return slices.Clone(all) }

// chosen returns the families of apps as a whole, or else those of workers.
func chosen(ofApp bool) []*Family {
	return slices.DeleteFunc(All(), func(f *Family) bool { return strings.HasPrefix(f.Name, "runnel_app_") != ofApp })
}

func define(kind Kind, name, help string, labels ...string) *Family {
	f := &Family{"runnel_" + name, help, kind, append([]string{"app"}, labels...)}
	all = append(all, f)
	return f
}

func counter(name, help string, labels ...string) *Family {
	return define(Counter, name, help, labels...)
}

func gauge(name, help string, labels ...string) *Family {
	return define(Gauge, name, help, labels...)
}

// A row is a family and its value in a T.
type row[T any] struct {
	*Family
	of func(T) float64
}

type gathering struct {
	app string
	add func(Sample)
}

func (g gathering) one(f *Family, value float64, labels ...string) {
	g.add(Sample{f, append([]string{g.app}, labels...), value, nil})
}

func rows[T any](g gathering, table []row[T], values []T, labels func(T) []string) {
	for _, r := range table {
		for _, v := range values {
			g.one(r.Family, r.of(v), labels(v)...)
		}
	}
}

func load(n *atomic.Int64) float64 { return float64(n.Load()) }

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
