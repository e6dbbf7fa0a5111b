package runneltest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/runnel-go/runnel/internal/store"
)

// Cancel forgets a delayed event of this run.
func (r *recorder) Cancel(ctx context.Context, stream string, partition int, id string) (bool, error) {
	return r.change(ctx, stream, partition, id, func(i int) { r.sent = slices.Delete(r.sent, i, i+1) })
}

// Reschedule changes when one is due.
func (r *recorder) Reschedule(ctx context.Context, stream string, partition int, id string, at time.Time) (bool, error) {
	return r.change(ctx, stream, partition, id, func(i int) {
		r.sent[i].at = at
		r.sent[i].entry.Values[store.DueField] = millis(at)
	})
}

// change calls fn with the number of a delayed event, and reports whether there
// was one.
func (r *recorder) change(ctx context.Context, stream string, partition int, id string, fn func(i int)) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := errors.Join(r.fail, ctx.Err()); err != nil {
		return false, err
	}
	id = store.DelayedID(partition, id)
	i := slices.IndexFunc(r.sent, func(a appended) bool { return a.stream.Name == stream && a.entry.ID == id })
	if i >= 0 {
		fn(i)
	}
	return i >= 0, nil
}

func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }
