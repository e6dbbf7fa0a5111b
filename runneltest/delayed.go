package runneltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/store"
)

var _ appview.Delayer = (*recorder)(nil)

// Delay records; what is delayed never becomes due during a run.
func (r *recorder) Delay(ctx context.Context, delays []store.Delay) []store.Appended {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]store.Appended, len(delays))
	now := time.Now()
	for i, d := range delays {
		if err := errors.Join(r.fail, ctx.Err()); err != nil {
			out[i].Err = err
			continue
		}
		for _, rec := range d.Records {
			once := onceKey{d.Stream, d.Partition, rec.ID}
			if id, duplicate := r.once[once]; duplicate {
				out[i].IDs, out[i].Duplicate = append(out[i].IDs, id), append(out[i].Duplicate, true)
				continue
			}
			at := rec.At
			if at.IsZero() {
				at = now.Add(rec.After)
			}
			r.delayed++
			id := store.DelayedID(d.Partition, fmt.Sprintf("%016d", r.delayed))
			entry := entryOf(id, rec.Fields)
			entry.Values[store.SentField], entry.Values[store.DueField] = millis(now), millis(at)
			r.sent = append(r.sent, appended{stream: r.byName[d.Stream], entry: entry, at: at, once: rec.ID})
			r.remember(once, id)
			out[i].IDs, out[i].Duplicate = append(out[i].IDs, id), append(out[i].Duplicate, false)
		}
	}
	return out
}

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
