package families

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/inspect"
	tables "github.com/runnel-go/runnel/internal/rows"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/worker"
)

// lookPatience is how long a scrape waits for Redis.
const lookPatience = 5 * time.Second

// A workerSource gathers the metrics of an app's worker, and of the sends of this process.
type workerSource struct {
	app    *appview.View
	series int // partitions of a processor that have series of their own
	looks  *looks

	extensions *extensions
}

// OfWorker returns the source of the metrics of an app's worker, a *runnel.App, and turns on the
// measurement of latencies. At most series partitions of a processor have series of their own; at most countAtMost
// entries of a partition are counted one by one.
func OfWorker(app any, series int, countAtMost int64) Source {
	view := appview.Of(app)
	view.KeepLatencies()
	return &workerSource{view, series, &looks{app: view, count: countAtMost}, extensionsOf(view.App, app, false)}
}

func (w *workerSource) Families() []*Family { return append(chosen(false), w.extensions.list...) }

func (w *workerSource) Gather(add func(Sample)) {
	g := gathering{w.app.App, add}
	internal := map[string]bool{} // streams
	if streams, err := w.app.Streams(); err == nil {
		rows(g, sendCounters, streams, func(s *appview.Stream) []string { return []string{s.Name} })
		for _, s := range streams {
			g.one(sendFailures, load(&s.Sent.Refused), "refused", s.Name)
			g.one(sendFailures, load(&s.Sent.Unknown), "unknown", s.Name)
			internal[s.Name] = store.InternalKind(s.Meta.Kind)
		}
	}
	s := w.app.Stats()
	g.one(up, oneIf(s != nil))
	if s == nil {
		return
	}
	g.one(info, 1, s.Worker)
	rows(g, workerRows, []*worker.Stats{s}, func(*worker.Stats) []string { return nil })
	g.processors(s, internal)
	ctx, cancel := context.WithTimeout(context.Background(), lookPatience)
	defer cancel()
	looks, err := w.looks.owned(ctx, s.Processors)
	g.one(redisUp, oneIf(err == nil))
	if err == nil {
		g.partitions(looks, w.series, func(l *look) bool { return internal[l.stream] })
	}
	if client, err := w.app.Client(); err == nil {
		for _, s := range w.extensions.gather(ctx, client) {
			add(s)
		}
		if all, err := inspect.Evictions(ctx, client); err == nil {
			g.one(evicts, oneIf(evicting(all)))
		}
	}
}

func (g gathering) processors(s *worker.Stats, internal map[string]bool) {
	processors := make([]*worker.ProcessorStats, len(s.Processors))
	for i := range s.Processors {
		processors[i] = &s.Processors[i]
	}
	named := func(p *worker.ProcessorStats) []string { return []string{p.Processor, p.Stream} }
	public := slices.DeleteFunc(slices.Clone(processors), func(p *worker.ProcessorStats) bool { return internal[p.Stream] })
	rows(g, eventRows, public, named)
	rows(g, processorRows, processors, named)
	var tables []tableOf
	for _, p := range processors {
		tables = append(tables, tablesOf(p)...)
	}
	rows(g, tableRows, tables, tableOf.labels)
	for _, p := range processors {
		g.one(failures, load(&p.Counters.Failed), "retry", p.Processor, p.Stream)
		g.one(failures, load(&p.Counters.Ignored), "ignore", p.Processor, p.Stream)
	}
	timed := slices.DeleteFunc(public, func(p *worker.ProcessorStats) bool { return !p.Timed })
	for _, p := range timed {
		g.add(Sample{handlerSeconds, []string{g.app, p.Processor, p.Stream}, 0, &p.Handler})
	}
	for _, p := range timed {
		g.add(Sample{delaySeconds, []string{g.app, p.Processor, p.Stream}, 0, &p.Delay})
	}
}

// partitions gathers what is stored of the owned partitions; for internal streams not their lag.
func (g gathering) partitions(looks []*look, series int, internal func(*look) bool) {
	public := slices.DeleteFunc(slices.Clone(looks), internal)
	ofLook := func(l *look) []string { return []string{l.processor, l.stream} }
	rows(g, lagGauges, public, ofLook)
	rows(g, totalGauges, looks, ofLook)
	for _, l := range looks {
		for _, s := range l.stored {
			g.one(storedRowsGauge, float64(s.count), s.of.labels()...)
		}
	}
	ofPartition := func(p ownedPartition) []string {
		return []string{strconv.Itoa(p.Partition), p.look.processor, p.look.stream}
	}
	rows(g, partitionLagGauges, shown(public, series), ofPartition)
	rows(g, partitionGauges, shown(looks, series), ofPartition)
}

// A tableOf is a table of a processor.
type tableOf struct {
	processor, stream string
	tables.Config
}

func (t tableOf) labels() []string { return []string{t.processor, t.stream, t.Name} }

func tablesOf(p *worker.ProcessorStats) (all []tableOf) {
	for _, t := range p.Tables {
		all = append(all, tableOf{p.Processor, p.Stream, t})
	}
	return all
}

type ownedPartition struct {
	look *look
	*inspect.PartitionState
}

// shown returns the partitions with series of their own, without the unreadable ones, which the
// totals count as unknown.
func shown(looks []*look, series int) (out []ownedPartition) {
	for _, l := range looks {
		for i := range l.partitions[:min(len(l.partitions), max(series, 0))] {
			if p := &l.partitions[i]; p.Err == "" {
				out = append(out, ownedPartition{l, p})
			}
		}
	}
	return out
}
