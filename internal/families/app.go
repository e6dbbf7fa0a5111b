package families

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
)

const (
	appFreshFor = 5 * time.Second
	appPatience = 8 * time.Second // scrapes give up after 10 s by default
)

type appSource struct {
	app        *appview.View
	count      int64
	extensions *extensions

	mu   sync.Mutex // held during requests to Redis, so that concurrent scrapes share an answer
	at   time.Time
	last *inspect.AppState
	more []Sample // of extensions
}

// OfApp returns the source of the metrics of an app as a whole, a *runnel.App. At most countAtMost
// entries of a partition are counted one by one.
func OfApp(app any, countAtMost int64) Source {
	view := appview.Of(app)
	return &appSource{app: view, count: countAtMost, extensions: extensionsOf(view.App, app, true)}
}

func (a *appSource) Families() []*Family { return append(chosen(true), a.extensions.list...) }

func (a *appSource) Gather(add func(Sample)) {
	g := gathering{a.app.App, add}
	state, more := a.look()
	g.one(appUp, oneIf(state != nil))
	if state == nil {
		return
	}
	g.one(appEvicts, oneIf(evicting(state.Evictions)))
	var streams []*inspect.StreamState
	var processors, public []*inspect.ProcessorState
	for i := range state.Streams {
		s := &state.Streams[i]
		internal := store.InternalKind(s.Kind)
		if !internal {
			streams = append(streams, s)
		}
		for j := range s.Processors {
			processors = append(processors, &s.Processors[j])
			if !internal {
				public = append(public, &s.Processors[j])
			}
		}
	}
	rows(g, appStreamRows, streams, func(s *inspect.StreamState) []string { return []string{s.Stream} })
	labels := func(p *inspect.ProcessorState) []string { return []string{p.Processor, p.Stream} }
	rows(g, appOwnerRows, processors, labels)
	rows(g, appLagRows, public, labels)
	rows(g, appStoredRows, processors, labels)
	for _, s := range more {
		add(s)
	}
}

func evicting(all []inspect.EvictionState) bool {
	return slices.ContainsFunc(all, func(e inspect.EvictionState) bool { return e.MaxMemory > 0 })
}

// look returns the state of the app, nil if unknown, and the samples of extensions.
func (a *appSource) look() (*inspect.AppState, []Sample) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last != nil && time.Since(a.at) < appFreshFor {
		return a.last, a.more
	}
	a.last = nil
	ctx, cancel := context.WithTimeout(context.Background(), appPatience)
	defer cancel()
	client, err := a.app.Client()
	if err != nil {
		return nil, nil
	}
	if a.last, err = inspect.App(ctx, client, "", a.count); err != nil {
		return nil, nil
	}
	if a.last.Evictions, err = inspect.Evictions(ctx, client); err != nil {
		a.last = nil
		return nil, nil
	}
	a.more = a.extensions.gather(ctx, client)
	a.at = time.Now()
	return a.last, a.more
}

var (
	appUp     = gauge("app_up", "1 if Redis told the state of the app as a whole, else 0.")
	appEvicts = gauge("app_redis_evicts", "1 if Redis may evict keys: its maxmemory-policy is not noeviction, and maxmemory is set; else 0.")
)

var appStreamRows = []row[*inspect.StreamState]{
	{gauge("app_delayed_events", "Events of the stream that wait for their time.", ofStream...), func(s *inspect.StreamState) float64 { return float64(s.Delayed) }},
}

var appOwnerRows = []row[*inspect.ProcessorState]{
	{processorGauge("app_members", "Members of the processor that have a heartbeat."), func(p *inspect.ProcessorState) float64 { return float64(p.Working()) }},
	{processorGauge("app_partitions", "Partitions of the stream."), func(p *inspect.ProcessorState) float64 { return float64(len(p.Partitions)) }},
	{processorGauge("app_owned_partitions", "Partitions that a worker owns."), func(p *inspect.ProcessorState) float64 { return float64(p.Totals.Owned) }},
}

// appLagRows say nothing about internal streams.
var appLagRows = []row[*inspect.ProcessorState]{
	{processorGauge("app_lag_events", "Events appended and not yet acked, in all partitions."), func(p *inspect.ProcessorState) float64 { return float64(p.Totals.Lag) }},
	{processorGauge("app_lag_at_least", "1 if the lag is larger than runnel_app_lag_events, because it was not counted further."), func(p *inspect.ProcessorState) float64 { return oneIf(p.Totals.LagMore) }},
	{processorGauge("app_oldest_event_age_seconds", "Age of the oldest event that is not acked, in all partitions; 0 without one."), func(p *inspect.ProcessorState) float64 { return float64(p.Totals.Age) / 1e3 }},
	{processorGauge("app_pending_events", "Events delivered and not yet acked, in all partitions; 0 by position, of which Redis does not know it."), func(p *inspect.ProcessorState) float64 { return float64(max(p.Totals.Pending, 0)) }},
}

var appStoredRows = []row[*inspect.ProcessorState]{
	{processorGauge("app_parked_events", "Parked events, in all partitions."), func(p *inspect.ProcessorState) float64 { return float64(p.Totals.Parked) }},
	{processorGauge("app_dead_letters", "Dead letters, in all partitions."), func(p *inspect.ProcessorState) float64 { return float64(p.Totals.Dead) }},
	{processorGauge("app_outbox_entries", "Outputs in outboxes, in all partitions: committed, and not yet where they are for."), func(p *inspect.ProcessorState) float64 { return float64(p.Totals.Outputs) }},
	{processorGauge("app_quarantined_partitions", "Partitions that a failure has stopped."), func(p *inspect.ProcessorState) float64 { return float64(p.Totals.Quarantined) }},
	{processorGauge("app_halted_partitions", "Partitions with an event at which a worker halted, and that is not acked yet."), func(p *inspect.ProcessorState) float64 { return float64(p.Totals.Halted) }},
	{processorGauge("app_forgotten_partitions", "Partitions of which Redis has forgotten events within the last day."), func(p *inspect.ProcessorState) float64 { return float64(p.Totals.Forgotten) }},
	{processorGauge("app_held_partitions", "Partitions that a pause or a block holds back."), func(p *inspect.ProcessorState) float64 { return float64(p.Totals.Held) }},
	{processorGauge("app_unknown_partitions", "Partitions that could not be looked at."), func(p *inspect.ProcessorState) float64 { return float64(p.Totals.Unknown) }},
	{processorCounter("app_lost_events_total", "Events that were removed from Redis before the processor had processed them, as Redis has it stored."), func(p *inspect.ProcessorState) float64 { return float64(p.Totals.Lost) }},
}
