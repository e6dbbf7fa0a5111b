package inspect

import (
	"context"

	"github.com/runnel-go/runnel/internal/store"
)

// A Watch looks at an app repeatedly. Each look costs one round trip, of two requests, for the keys
// outside of partitions, and one for 256 partitions of each processor. It is for use by one
// goroutine.
type Watch struct {
	c      *store.Client
	only   string
	all    bool
	count  int64
	likely []string // keys that the last look needed
	last   *AppState
}

type Sample struct {
	App   *AppState     `json:"app"`
	Rates []StreamRates `json:"rates"` // since the previous look, in the order of the app's streams
}

// NewWatch watches the named stream of an app, or all if only is "": without internal ones unless all
// is set. count is as for App.
func NewWatch(c *store.Client, only string, all bool, count int64) *Watch {
	return &Watch{c: c, only: only, all: all, count: count}
}

// Look looks once. After an error the next look begins anew, but keeps the rates.
func (w *Watch) Look(ctx context.Context) (*Sample, error) {
	l := newLook(w.c, w.count)
	likely := w.likely
	w.likely = nil
	if err := l.readAhead(ctx, likely); err != nil {
		return nil, err
	}
	a, err := l.app(ctx, w.only)
	if err != nil {
		return nil, err
	}
	if w.only == "" && !w.all {
		a.HideInternal()
	}
	w.likely = l.needed
	s := &Sample{App: a, Rates: ratesOf(w.last, a)}
	w.last = a
	return s, nil
}
