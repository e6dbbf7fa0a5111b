// Package collector registers the metrics of package metrics with a registry of the program.
//
//	app := runnel.New("shop", nil)
//	prometheus.MustRegister(collector.New(app, nil)) // before Run
package collector

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/families"
	"github.com/runnel-go/runnel/metrics"
)

// A Collector collects the metrics of an app, for any registry. It is safe for concurrent use.
type Collector struct {
	source families.Source
	descs  map[*families.Family]*prometheus.Desc
}

var _ prometheus.Collector = (*Collector)(nil)

// New returns the collector of what metrics.Handler serves; nil opts are all defaults. Call it
// before Run, after all is registered: it turns on the measurement of latencies.
func New(app *runnel.App, opts *metrics.Options) *Collector {
	o := cmp.Or(opts, &metrics.Options{})
	return collect(families.OfWorker(app, cmp.Or(o.Partitions, metrics.DefaultPartitions), cmp.Or(o.CountAtMost, metrics.DefaultCountAtMost)))
}

// NewOverview returns the collector of what metrics.OverviewHandler serves; nil opts are all
// defaults.
func NewOverview(app *runnel.App, opts *metrics.Options) *Collector {
	return collect(families.OfApp(app, cmp.Or(cmp.Or(opts, &metrics.Options{}).CountAtMost, metrics.DefaultCountAtMost)))
}

func collect(source families.Source) *Collector {
	c := &Collector{source, map[*families.Family]*prometheus.Desc{}}
	for _, f := range source.Families() {
		c.descs[f] = prometheus.NewDesc(f.Name, f.Help, f.Labels, nil)
	}
	return c
}

// Describe sends the descriptions of all metrics.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range c.descs {
		to <- desc
	}
}

// Collect sends all metrics. It asks Redis at most once a second, or once in five seconds for an
// overview, and waits at most eight seconds. Without an answer the metrics that come from Redis are
// missing, and runnel_redis_up or runnel_app_up is 0.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	c.source.Gather(func(s families.Sample) {
		desc := c.descs[s.Family]
		switch h := s.Histogram; {
		case h != nil:
			buckets, n := map[float64]uint64{}, uint64(0)
			for i, bound := range h.Bounds {
				n += uint64(h.Counts[i])
				buckets[bound.Seconds()] = n
			}
			to <- prometheus.MustNewConstHistogram(desc, uint64(h.Count()), h.Sum.Seconds(), buckets, s.Values...)
		case s.Kind == families.Counter:
			to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, s.Value, s.Values...)
		default:
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, s.Value, s.Values...)
		}
	})
}
