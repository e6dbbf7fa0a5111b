package worker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/store"
)

// trimEvery is how often a partition is trimmed at most.
const trimEvery = time.Second

// maintenance trims partitions in which something was acked. An idle worker
// does nothing.
type maintenance struct {
	w    *Worker
	wake chan struct{}

	mu    sync.Mutex
	dirty map[*tenure]bool
}

func newMaintenance(w *Worker) *maintenance {
	return &maintenance{w: w, wake: make(chan struct{}, 1), dirty: map[*tenure]bool{}}
}

// mark tells that something was acked.
func (m *maintenance) mark(t *tenure) {
	if t.trimmable.Swap(true) {
		return
	}
	m.mu.Lock()
	m.dirty[t] = true
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *maintenance) run(ctx context.Context) {
	retry := outage.New(m.w.log, "trim", &m.w.count.Errors)
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		}
		timer := time.NewTimer(trimEvery)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if err := m.trim(ctx, m.take()); err != nil {
			retry.Wait(ctx, err)
		} else {
			retry.Recovered()
		}
	}
}

func (m *maintenance) take() []*tenure {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*tenure
	for t := range m.dirty {
		t.trimmable.Store(false)
		if !t.isLost() {
			out = append(out, t)
		}
	}
	clear(m.dirty)
	return out
}

// trim trims partitions, the streams one after another.
func (m *maintenance) trim(ctx context.Context, ts []*tenure) error {
	streams := map[string][]*tenure{}
	for _, t := range ts {
		streams[t.place.Stream] = append(streams[t.place.Stream], t)
	}
	var failed error
	for stream, ts := range streams {
		if err := m.trimStream(ctx, stream, ts); err != nil {
			failed = err
			for _, t := range ts {
				m.mark(t)
			}
		}
	}
	return failed
}

func (m *maintenance) trimStream(ctx context.Context, stream string, ts []*tenure) error {
	// Another program of the app may have registered a processor meanwhile.
	meta, ok, err := m.w.client.LoadMeta(ctx, stream)
	if err != nil || !ok {
		return err
	}
	requests := make([]store.TrimRequest, len(ts))
	for n, t := range ts {
		if !slices.Contains(meta.Processors, t.place.Processor) {
			// It was removed while it started: nothing may be trimmed before it
			// is registered again.
			if err := m.w.cfg.Ensure(ctx); err != nil {
				return err
			}
			meta.Processors = append(meta.Processors, t.place.Processor)
		}
		requests[n] = store.TrimRequest{Log: t.place.Log, Processors: meta.Processors, Size: meta.Size}
	}
	trimmed, err := m.w.client.Trim(ctx, requests)
	for _, t := range trimmed {
		m.w.count.Trimmed.Add(t.Removed)
	}
	return err
}
