package worker

import (
	"context"

	"github.com/runnel-go/runnel/internal/help"
)

// warnOfEviction says at the start, as loudly as a log can, that Redis may remove keys: then
// events that were accepted are gone without an error. It does not refuse: a worker that
// worked must not be kept from starting again by what was changed on the server meanwhile.
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
