// Package metrics exports the metrics of a worker to Prometheus: the work of its
// processors, their latencies, their lag, and the partitions and events that they hold.
//
//	app := runnel.New("shop", nil)
//	http.Handle("/metrics", metrics.Handler(app, nil)) // before Run
//
// `worker --http` of package cli does so. docs/operating.md lists every metric with its
// meaning.
//
// Counters begin at zero with each Run. Series have the labels stream and processor;
// those of partitions also have the label partition. A worker has series for the
// partitions that it owns, at most Options.Partitions of each processor. No label comes
// from data.
package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/runnel-go/runnel"
)

// Options configure metrics; a zero field is its default.
type Options struct {
	// Partitions is how many partitions of a processor have series of their own, those
	// with the lowest numbers; the sums are over all owned partitions. Default 256,
	// negative none.
	Partitions int
	// CountAtMost bounds how many entries of a partition are counted one by one where
	// Redis cannot tell the lag: after XDEL or XTRIM by hand, and with the embedded
	// server. A larger lag is reported as this number, with a
	// runnel_partition_lag_at_least of 1. Default 1000.
	CountAtMost int64
}

// DefaultPartitions and DefaultCountAtMost are the defaults of Options.
const (
	DefaultPartitions  = 256
	DefaultCountAtMost = 1000
)

// Handler serves the metrics of an app, of the Go runtime and of the process in the
// formats of Prometheus. Call it before Run: the call turns on the measurement of
// latencies, which costs less than 0.1 µs per event. A nil opts is all defaults.
func Handler(app *runnel.App, opts *Options) http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(NewCollector(app, opts), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
}
