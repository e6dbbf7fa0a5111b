package metrics

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/worker"
)

// A Collector collects the metrics of an app's worker, and of the sends of this process.
// It may be registered with any registry, and used concurrently.
type Collector struct {
	app   string
	reg   *appview.View
	opts  Options
	looks *looks
}

var _ prometheus.Collector = (*Collector)(nil)

// NewCollector returns the collector of an app; see Handler.
func NewCollector(app *runnel.App, opts *Options) *Collector {
	c := &Collector{app: app.Name(), reg: appview.Of(app)}
	if opts != nil {
		c.opts = *opts
	}
	c.opts.Partitions = cmp.Or(c.opts.Partitions, DefaultPartitions)
	c.opts.CountAtMost = cmp.Or(c.opts.CountAtMost, DefaultCountAtMost)
	c.looks = &looks{reg: c.reg, count: c.opts.CountAtMost}
	c.reg.KeepLatencies()
	return c
}

// lookPatience is how long a scrape waits for Redis.
const lookPatience = 5 * time.Second

// Describe sends the descriptions of all metrics.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, f := range ofWorkers() {
		to <- f.desc
	}
}

// Collect sends all metrics. It reads the positions of the owned partitions from Redis,
// for all processors together and at most once a second, with two requests for 256
// partitions. Without an answer the metrics of partitions are missing and runnel_redis_up
// is 0.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	p := &page{to: to, app: c.app}
	if streams, err := c.reg.Streams(); err == nil {
		for _, s := range streams {
			p.sent(s)
		}
	}
	s := c.reg.Stats()
	if s == nil {
		p.add(up, 0)
		return
	}
	p.add(up, 1)
	p.worker(s)
	ctx, cancel := context.WithTimeout(context.Background(), lookPatience)
	defer cancel()
	looks, err := c.looks.owned(ctx, s.Processors)
	p.add(redisUp, oneIf(err == nil))
	for i := range s.Processors {
		p.processor(&s.Processors[i])
		if err == nil {
			p.partitions(&looks[i], c.opts.Partitions)
		}
	}
	if client, err := c.reg.Client(); err == nil {
		if all, err := inspect.Evictions(ctx, client); err == nil {
			p.add(evicts, oneIf(evicting(all)))
		}
	}
}

// A page is one collection.
type page struct {
	to  chan<- prometheus.Metric
	app string
}

func (p *page) add(f *family, value float64, labels ...string) {
	p.to <- prometheus.MustNewConstMetric(f.desc, f.kind, value, append([]string{p.app}, labels...)...)
}

func (p *page) count(f *family, n *atomic.Int64, labels ...string) {
	p.add(f, float64(n.Load()), labels...)
}

func (p *page) sent(s *appview.Stream) {
	p.count(sent, &s.Sent.Sent, s.Name)
	p.count(sentDuplicates, &s.Sent.Duplicates, s.Name)
	p.count(sendFailures, &s.Sent.Refused, s.Name, "refused")
	p.count(sendFailures, &s.Sent.Unknown, s.Name, "unknown")
}

func (p *page) worker(s *worker.Stats) {
	p.add(info, 1, s.Worker)
	p.add(startTime, float64(s.Began.UnixMilli())/1e3)
	p.add(isReady, oneIf(s.Ready == nil))
	for _, m := range workerCounters {
		p.count(m.family, m.of(s.Counters))
	}
}

func (p *page) processor(s *worker.ProcessorStats) {
	labels := []string{s.Stream, s.Processor}
	for _, m := range processorCounters {
		p.count(m.family, m.of(s.Counters), labels...)
	}
	p.count(failures, &s.Counters.Failed, append(labels, "retry")...)
	p.count(failures, &s.Counters.Ignored, append(labels, "ignore")...)
	for _, m := range processorGauges {
		p.add(m.family, m.of(s), labels...)
	}
	if s.Timed {
		p.histogram(handlerSeconds, s.Handler, labels)
		p.histogram(delaySeconds, s.Delay, labels)
	}
}

func (p *page) histogram(f *family, h worker.Histogram, labels []string) {
	buckets, n := map[float64]uint64{}, uint64(0)
	for i, bound := range h.Bounds {
		n += uint64(h.Counts[i])
		buckets[bound.Seconds()] = n
	}
	p.to <- prometheus.MustNewConstHistogram(f.desc, uint64(h.Count()), h.Sum.Seconds(), buckets, append([]string{p.app}, labels...)...)
}

// partitions sends the metrics of the owned partitions that come from Redis.
func (p *page) partitions(look *look, series int) {
	labels := []string{look.stream, look.processor}
	for _, m := range totalGauges {
		p.add(m.family, m.of(&look.totals), labels...)
	}
	for i := range look.partitions {
		part := &look.partitions[i]
		if i >= series {
			return
		}
		if part.Err != "" {
			continue // the totals count it as unknown
		}
		of := append(slices.Clone(labels), strconv.Itoa(part.Partition))
		for _, m := range partitionGauges {
			p.add(m.family, m.of(part), of...)
		}
	}
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
