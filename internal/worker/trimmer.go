package worker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/store"
)

// trimEvery is how often a partition is trimmed at most.
const trimEvery = time.Second

type trimmer struct {
	w    *Worker
	wake signal

	mu    sync.Mutex
	dirty map[*partition]bool
}

func newTrimmer(w *Worker) *trimmer {
	return &trimmer{w: w, wake: newSignal(), dirty: map[*partition]bool{}}
}

// mark notes that entries of a partition were acked.
func (t *trimmer) mark(p *partition) {
	t.mu.Lock()
	t.dirty[p] = true
	t.mu.Unlock()
	t.wake.set()
}

func (t *trimmer) run(ctx context.Context) {
	retry := outage.New(t.w.log, "trim", &t.w.count.Errors)
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		}
		if !monotime.Sleep(ctx, trimEvery) {
			return
		}
		if err := t.trim(ctx, t.take()); err != nil {
			retry.Wait(ctx, err)
		} else {
			retry.Recovered()
		}
	}
}

func (t *trimmer) take() []*partition {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []*partition
	for p := range t.dirty {
		if !p.life.isLost() {
			out = append(out, p)
		}
	}
	clear(t.dirty)
	return out
}

// trim trims partitions, the streams one after another.
func (t *trimmer) trim(ctx context.Context, ts []*partition) error {
	streams := map[string][]*partition{}
	for _, p := range ts {
		streams[p.keys.Stream] = append(streams[p.keys.Stream], p)
	}
	var failed error
	for stream, ts := range streams {
		if err := t.trimStream(ctx, stream, ts); err != nil {
			failed = err
			for _, p := range ts {
				t.mark(p)
			}
		}
	}
	return failed
}

func (t *trimmer) trimStream(ctx context.Context, stream string, set []*partition) error {
	// Another program of the app may have registered a processor meanwhile.
	meta, ok, err := t.w.client.LoadMeta(ctx, stream)
	if err != nil || !ok {
		return err
	}
	requests := make([]store.TrimRequest, len(set))
	for n, p := range set {
		if !slices.Contains(meta.Processors, p.keys.Processor) {
			// The processor was removed during the start: nothing may be trimmed before it is
			// registered again.
			if err := t.w.cfg.Ensure(ctx, AtOnce); err != nil {
				return err
			}
			meta.Processors = append(meta.Processors, p.keys.Processor)
		}
		requests[n] = store.TrimRequest{Log: p.keys.Log, Processors: meta.Processors, Size: meta.MaxLen}
		if meta.Kind == store.KindTopic {
			requests[n].Holders = store.Holders(t.w.client.Keys(), stream, p.keys.Number)
		}
	}
	trimmed, err := t.w.client.Trim(ctx, requests)
	for _, one := range trimmed {
		t.w.count.Trimmed.Add(one.Removed)
	}
	return err
}
