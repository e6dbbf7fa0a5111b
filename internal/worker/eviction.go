package worker

import "context"

// warnOfEviction says at the start, as loudly as a log can, that Redis may remove keys: then
// events that were accepted are gone without an error. It does not refuse: a worker that
// worked must not be kept from starting again by what was changed on the server meanwhile.
func (w *Worker) warnOfEviction(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	evictions, err := w.client.Evictions(ctx)
	if err != nil {
		w.log.Warn("it is not known whether Redis evicts keys: see that its maxmemory-policy is noeviction", "err", err)
	}
	for _, e := range evictions {
		if e.Forbidden() {
			w.log.Warn("Redis has evicted keys since its start: events, positions or locks may be gone; `check` and `status` show what is known of it", "err", e)
			continue
		}
		w.log.Error("Redis may evict keys: when its memory is full, accepted events, positions, quarantines and locks vanish without an error; run CONFIG SET maxmemory-policy noeviction there, and set it in its configuration file", "err", e)
	}
}
