package inspect

import (
	"context"
	"time"

	"github.com/runnel-go/runnel/internal/rstream"
)

const (
	listEvery = 10 * time.Second // how often a Watch looks for new streams, at least
	listShare = 100              // and of its time at most one part in so many is spent on it
)

// A Watch looks at an app again and again. Each look costs one request for what
// belongs to no partition, and two for 256 partitions of each processor; which streams
// there are it asks now and then, for that takes a look at all keys of the database.
// One goroutine may use it.
type Watch struct {
	c     *rstream.Client
	only  string
	count int64

	names  []string
	listed time.Time     // when the streams were
	took   time.Duration // to list them
	likely []string      // keys that the last look needed
	last   *AppState
}

// A Sample is what a Watch saw.
type Sample struct {
	App   *AppState     `json:"app"`
	Rates []StreamRates `json:"rates"` // since the look before, in the order of the app's streams
}

// NewWatch watches the named stream of an app, all its streams if only is "". count is
// as for App.
func NewWatch(c *rstream.Client, only string, count int64) *Watch {
	return &Watch{c: c, only: only, count: count}
}

// Look looks once. After an error the next look begins anew, but for the rates.
func (w *Watch) Look(ctx context.Context) (*Sample, error) {
	if err := w.list(ctx); err != nil {
		return nil, err
	}
	l := newLook(w.c, w.count)
	likely := w.likely
	w.likely = nil
	if err := l.readAhead(ctx, likely); err != nil {
		return nil, err
	}
	a, err := l.app(ctx, w.names)
	if err != nil {
		return nil, err
	}
	w.likely = l.needed
	s := &Sample{App: a, Rates: ratesOf(w.last, a)}
	w.last = a
	return s, nil
}

func (w *Watch) list(ctx context.Context) error {
	if w.only != "" {
		w.names = []string{w.only}
		return nil
	}
	began := time.Now()
	if !w.listed.IsZero() && began.Sub(w.listed) < max(listEvery, listShare*w.took) {
		return nil
	}
	names, err := w.c.Streams(ctx)
	if err != nil {
		return err
	}
	w.names, w.listed, w.took = names, began, time.Since(began)
	return nil
}
