package worker

import (
	"context"

	"github.com/runnel-go/runnel/internal/help"
)

// warnOfEviction logs an error if Redis may evict keys, since accepted events then disappear
// without an error. It does not refuse to start: a changed setting of the server must not keep
// a worker from restarting.
func (w *Worker) warnOfEviction(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	evictions, err := w.client.Evictions(ctx)
	if err != nil {
		w.log.Warn("eviction policy unknown", "err", err, "help", help.Eviction)
	}
	for _, e := range evictions {
		if e.Forbidden() {
			w.log.Warn("redis evicted keys", "err", e, "help", help.Eviction)
			continue
		}
		w.log.Error("redis may evict keys", "err", e, "help", help.Eviction)
	}
}
