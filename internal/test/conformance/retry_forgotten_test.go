package conformance

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/store"
)

// A failover to a replica that was behind brings a parked event back as pending and not parked.
// Unlike other entries that come back, its owner must not ack it, or no worker would ever process
// it. By position it brings the position before the event back. Its owner must find that out, though nothing
// new comes; and where the position was there anyway, it must not pass the event.
func TestParkedEventForgottenByRedis(t *testing.T) {
	for name, passed := range map[string]bool{"acked": true, "not passed yet": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, 1, 3*time.Second)
			r.warm()
			r.options.Retry = &runnel.Retry{Max: 9, Order: runnel.OrderNone}
			m, executor := r.startReady("w1")
			r.await(0, r.add(0, 1)...)
			r.rest()
			group := store.GroupName(r.processor, executor)
			forget := r.remember(group)
			var mended atomic.Bool
			r.hook(func(_ context.Context, e *runnel.Event) error {
				if !mended.Load() && e.Attempt == 1 {
					return runnel.RetryAfter(errWeather, time.Hour)
				}
				return nil
			})
			acks := r.onAck(m.proxy, 1, 0)
			if !passed && byPosition { // by group a parked event is acked in the same step
				acks.Do(hold)
			}
			id := r.add(0, 1)[0]
			r.eventually("it is parked", func() bool {
				states, _, err := r.client.Retries(t.Context(), r.place(0))
				return err == nil && len(states) == 1
			})
			mended.Store(true)
			switch {
			case passed:
				r.await(0, r.add(0, 1)...)
				r.eventually("the acks are confirmed", func() bool { return r.undone(0) == 0 && unacked(m) == 0 })
			case byPosition:
				acks.Wait(t)
			}
			forget(id)
			acks.Release()
			r.await(0, id)
			r.rest()
			if now := r.executor(m); now != executor {
				t.Errorf("the executor ID is now %s, it was %s", now, executor)
			}
			if n := m.lost.Load(); n > 0 && !byPosition {
				t.Errorf("%d functions saw ErrLost", n)
			}
		})
	}
}

// remember returns what brings the state of partition 0 back as it is now, so that an event which was parked
// meanwhile is not parked, and not done.
func (r *rig) remember(group string) (forget func(id string)) {
	ctx, place := context.Background(), r.place(0)
	own, last := r.rdb.HGetAll(ctx, place.Own).Val(), r.groupsOf(0)[0].LastDeliveredID
	return func(id string) {
		r.t.Helper()
		_, err := r.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.HDel(ctx, place.Parked, id)
			p.HDel(ctx, place.Retry, id)
			if byPosition {
				p.Del(ctx, place.Own)
				p.HSet(ctx, place.Own, own)
				p.XGroupSetID(ctx, place.Log, group, last)
			} else {
				p.Do(ctx, "XCLAIM", place.Log, group, "runnel", 0, id, "FORCE", "JUSTID")
			}
			return nil
		})
		if err != nil {
			r.t.Fatal(err)
		}
	}
}
