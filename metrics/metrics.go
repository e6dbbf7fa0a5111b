// Package metrics exports the metrics of a worker to Prometheus: the work of its processors, their
// latencies and lag, and the partitions and events that they hold.
//
//	app := runnel.New("shop", nil)
//	http.Handle("/metrics", metrics.Handler(app, nil)) // before Run
//
// `worker --http` of package cli does so. docs/operating.md explains every metric.
//
// Counters begin at zero with each Run. Series have the labels stream and processor, and those of
// partitions the label partition. A worker has series for the partitions that it owns, at most
// Options.Partitions of each processor. No label comes from data. A program with a registry of its
// own uses package metrics/collector.
package metrics

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	runtime "github.com/VictoriaMetrics/metrics"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/families"
)

// Options configure metrics; a zero field is its default.
type Options struct {
	// Partitions is how many partitions of a processor have series of their own, lowest numbers
	// first; sums are over all owned partitions. Default 256, negative none.
	Partitions int
	// CountAtMost bounds how many entries of a partition are counted one by one if Redis does not
	// know the lag: after XDEL or XTRIM by hand, and with the embedded server. A larger lag is
	// reported as this number, and runnel_partition_lag_at_least is 1. Default 1000.
	CountAtMost int64
}

// DefaultPartitions and DefaultCountAtMost are the defaults of Options.
const (
	DefaultPartitions  = 256
	DefaultCountAtMost = 1000
)

// Handler serves the metrics of an app, of the Go runtime and of the process in the text format of
// Prometheus. Call it before Run, after all is registered: it turns on the measurement of latencies,
// which costs less than 0.1 µs per event. A nil opts is all defaults.
func Handler(app *runnel.App, opts *Options) http.Handler {
	o := cmp.Or(opts, &Options{})
	return handler(families.OfWorker(app, cmp.Or(o.Partitions, DefaultPartitions), cmp.Or(o.CountAtMost, DefaultCountAtMost)))
}

// OverviewHandler serves the metrics of an app as a whole in the text format of Prometheus, even
// while no worker runs: for each processor its members, owners, lag, and stopped partitions. Names
// begin with runnel_app_, so that no sum mixes them with the metrics of workers. A scrape reads all
// partitions, at most once in five seconds. The dashboard serves it at /metrics. A nil opts is all
// defaults; Options.Partitions has no effect. The handler is safe for concurrent use.
func OverviewHandler(app *runnel.App, opts *Options) http.Handler {
	return handler(families.OfApp(app, cmp.Or(cmp.Or(opts, &Options{}).CountAtMost, DefaultCountAtMost)))
}

func handler(source families.Source) http.Handler {
	runtime.ExposeMetadata(true)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var text bytes.Buffer
		write(&text, source)
		runtime.WriteGoMetrics(&text)
		runtime.WriteProcMetrics(&text)
		runtime.WriteFDMetrics(&text)
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		w.Write(text.Bytes())
	})
}

func write(w io.Writer, source families.Source) {
	var last *families.Family
	source.Gather(func(s families.Sample) {
		if s.Family != last {
			fmt.Fprintf(w, "# HELP %s %s\n# TYPE %[1]s %[3]s\n", s.Name, s.Help, s.Kind)
			last = s.Family
		}
		pairs := make([]string, len(s.Labels))
		for i, name := range s.Labels {
			pairs[i] = name + `="` + escaped.Replace(s.Values[i]) + `"`
		}
		labels := strings.Join(pairs, ",")
		h := s.Histogram
		if h == nil {
			fmt.Fprintf(w, "%s{%s} %s\n", s.Name, labels, number(s.Value))
			return
		}
		n := int64(0)
		for i, bound := range h.Bounds {
			n += h.Counts[i]
			fmt.Fprintf(w, "%s_bucket{%s,le=%q} %d\n", s.Name, labels, number(bound.Seconds()), n)
		}
		fmt.Fprintf(w, "%s_bucket{%s,le=\"+Inf\"} %d\n", s.Name, labels, h.Count())
		fmt.Fprintf(w, "%s_sum{%s} %s\n%[1]s_count{%[2]s} %[4]d\n", s.Name, labels, number(h.Sum.Seconds()), h.Count())
	})
}

var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
