package conformance

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A failover to a replica that was behind brings a parked event back as pending and not parked.
// Unlike other entries that come back, its owner must not ack it, or no worker would ever process
// it.
func TestParkedEventForgottenByRedis(t *testing.T) {
	srv := redistest.Start(t)
	r := rigOn(t, srv, "forgotten", streamName, processorName, 1, 3*time.Second)
	r.options.Retry = &runnel.Retry{Max: 9, Order: runnel.OrderNone}
	var mended atomic.Bool
	r.hook(func(_ context.Context, e *runnel.Event) error {
		if !mended.Load() && e.Attempt == 1 {
			return runnel.RetryAfter(errWeather, time.Hour)
		}
		return nil
	})
	m, executor := r.startReady("w1")
	id := r.add(0, 1)[0]
	ctx, place := context.Background(), r.place(0)
	r.eventually("it is parked", func() bool {
		states, _, err := r.client.Retries(ctx, place)
		return err == nil && len(states) == 1
	})
	mended.Store(true)
	last := r.add(0, 1)[0]
	r.await(0, last)
	r.rdb.HDel(ctx, place.Parked, id)
	r.rdb.HDel(ctx, place.Retry, id)
	group := store.GroupName(r.processor, executor)
	if err := r.rdb.Do(ctx, "XCLAIM", place.Log, group, "runnel", 0, id, "FORCE", "JUSTID").Err(); err != nil {
		t.Fatal(err)
	}
	r.await(0, id)
	r.rest()
	r.undisturbed(m, executor)
}
