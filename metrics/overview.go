package metrics

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/inspect"
)

// OverviewHandler serves the metrics of an app as a whole in the formats of Prometheus,
// whether any worker lives or not: for each processor its members, owners, lag, and
// stopped partitions. The names begin with runnel_app_, so that no sum mixes them with
// the metrics of workers. Each scrape reads all partitions, at most once in five seconds.
// The dashboard serves it at /metrics. A nil opts is all defaults; Options.Partitions has
// no effect. The handler is safe for concurrent use.
func OverviewHandler(app *runnel.App, opts *Options) http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(NewOverview(app, opts), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
}

const (
	overviewFreshFor = 5 * time.Second
	overviewPatience = 8 * time.Second // scrapes give up after 10 s by default
)

// An Overview collects the metrics of an app as a whole; see OverviewHandler. It may be registered
// with any registry, and used concurrently.
type Overview struct {
	app   string
	reg   *appview.View
	count int64

	mu   sync.Mutex // held during requests to Redis: concurrent scrapes share an answer
	at   time.Time
	last *inspect.AppState
}

var _ prometheus.Collector = (*Overview)(nil)

// NewOverview returns the collector of an app as a whole; see OverviewHandler.
func NewOverview(app *runnel.App, opts *Options) *Overview {
	o := &Overview{app: app.Name(), reg: appview.Of(app), count: DefaultCountAtMost}
	if opts != nil {
		o.count = cmp.Or(opts.CountAtMost, DefaultCountAtMost)
	}
	return o
}

// Describe sends the descriptions of all metrics of the overview.
func (o *Overview) Describe(to chan<- *prometheus.Desc) {
	to <- appUp.desc
	to <- appEvicts.desc
	for _, f := range overviewGauges {
		to <- f.family.desc
	}
	to <- appLost.desc
	to <- appDelayed.desc
}

// Collect sends all metrics of the overview. Without an answer from Redis there is only
// runnel_app_up, which is 0.
func (o *Overview) Collect(to chan<- prometheus.Metric) {
	p := &page{to: to, app: o.app}
	state := o.look()
	if state == nil {
		p.add(appUp, 0)
		return
	}
	p.add(appUp, 1)
	p.add(appEvicts, oneIf(evicting(state.Evictions)))
	for i := range state.Streams {
		s := &state.Streams[i]
		p.add(appDelayed, float64(s.Delayed), s.Stream)
		for j := range s.Processors {
			of := &s.Processors[j]
			labels := []string{of.Stream, of.Processor}
			for _, m := range overviewGauges {
				p.add(m.family, m.of(of), labels...)
			}
			p.add(appLost, float64(of.Totals.Lost), labels...)
		}
	}
}

// evicting reports whether a server may evict keys.
func evicting(all []inspect.EvictionState) bool {
	return slices.ContainsFunc(all, func(e inspect.EvictionState) bool { return e.MaxMemory > 0 })
}

// look returns the state of the app, nil if it is not known.
func (o *Overview) look() *inspect.AppState {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last != nil && time.Since(o.at) < overviewFreshFor {
		return o.last
	}
	o.last = nil
	ctx, cancel := context.WithTimeout(context.Background(), overviewPatience)
	defer cancel()
	client, err := o.reg.Client()
	if err != nil {
		return nil
	}
	if o.last, err = inspect.App(ctx, client, "", o.count); err != nil {
		return nil
	}
	if o.last.Evictions, err = inspect.Evictions(ctx, client); err != nil {
		o.last = nil
		return nil
	}
	o.at = time.Now()
	return o.last
}

var (
	appUp      = gauge("app_up", "1 if Redis told the state of the app as a whole, else 0.")
	appEvicts  = gauge("app_redis_evicts", "1 if Redis may evict keys: its maxmemory-policy is not noeviction, and maxmemory is set; else 0.")
	appDelayed = gauge("app_delayed_events", "Events of the stream that wait for their time.", ofStream...)
	appLost    = counter("app_lost_events_total", "Events that were removed from Redis before the processor had processed them, as Redis has it stored.", ofProcessor...)
)

// overviewGauges are the gauges of a processor as a whole.
var overviewGauges = []struct {
	family *family
	of     func(*inspect.ProcessorState) float64
}{
	{processorGauge("app_members", "Members of the processor that have a heartbeat."), func(p *inspect.ProcessorState) float64 { return float64(p.Working()) }},
	{processorGauge("app_partitions", "Partitions of the stream."), func(p *inspect.ProcessorState) float64 { return float64(len(p.Partitions)) }},
	{processorGauge("app_owned_partitions", "Partitions that a worker owns."), func(p *inspect.ProcessorState) float64 { return float64(p.Totals.Owned) }},
	{processorGauge("app_lag_events", "Events appended and not yet acked, in all partitions."), func(p *inspect.ProcessorState) float64 { return float64(p.Totals.Lag) }},
	{processorGauge("app_lag_at_least", "1 if the lag is larger than runnel_app_lag_events, because it was not counted further."), func(p *inspect.ProcessorState) float64 { return oneIf(p.Totals.LagMore) }},
	{processorGauge("app_oldest_event_age_seconds", "Age of the oldest event that is not acked, in all partitions; 0 without one."), func(p *inspect.ProcessorState) float64 { return float64(p.Totals.Age) / 1e3 }},
	{processorGauge("app_pending_events", "Events delivered and not yet acked, in all partitions."), func(p *inspect.ProcessorState) float64 { return float64(p.Totals.Pending) }},
	{processorGauge("app_parked_events", "Parked events, in all partitions."), func(p *inspect.ProcessorState) float64 { return float64(p.Totals.Parked) }},
	{processorGauge("app_dead_letters", "Dead letters, in all partitions."), func(p *inspect.ProcessorState) float64 { return float64(p.Totals.Dead) }},
	{processorGauge("app_quarantined_partitions", "Partitions that a failure has stopped."), func(p *inspect.ProcessorState) float64 { return float64(p.Totals.Quarantined) }},
	{processorGauge("app_halted_partitions", "Partitions with an event at which a worker halted, and that is not acked yet."), func(p *inspect.ProcessorState) float64 { return float64(p.Totals.Halted) }},
	{processorGauge("app_forgotten_partitions", "Partitions of which Redis has forgotten events within the last day."), func(p *inspect.ProcessorState) float64 { return float64(p.Totals.Forgotten) }},
	{processorGauge("app_held_partitions", "Partitions that a pause or a block holds back."), func(p *inspect.ProcessorState) float64 { return float64(p.Totals.Held) }},
	{processorGauge("app_unknown_partitions", "Partitions that could not be looked at."), func(p *inspect.ProcessorState) float64 { return float64(p.Totals.Unknown) }},
}
