package store

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// A running producer reads the metadata again, and stops once its keys are being moved or were.
func TestRunningProducerNoticesAMove(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		m := try(e.EnsureMeta(e.ctx(), "orders", orders())).must(t)
		send := func() error {
			e.metas.mu.Lock()
			e.metas.m["orders"] = readMeta{Meta: m, at: time.Now().Add(-metaAge)}
			e.metas.mu.Unlock()
			return e.Append(e.ctx(), []Append{{Stream: "orders", Log: e.keys.Partition("orders", 0), Records: [][]string{{"data", "{}"}}}})[0].Err
		}
		e.must(send())
		stored := e.raw.Get(e.ctx(), "__meta:example.orders").Val()
		e.must(e.raw.Set(e.ctx(), "__meta:example.orders", strings.Replace(stored, "standalone", MarkMoving, 1), 0).Err())
		refusedWith(t, send(), "stream orders: its keys are being moved")
		e.must(e.raw.Del(e.ctx(), "__meta:example.orders").Err())
		e.must(send()) // flushed, but not moved
		e.must(e.raw.Set(e.ctx(), "__meta:{example}.orders", strings.Replace(stored, "standalone", "cluster", 1), 0).Err())
		refusedWith(t, send(), "its metadata says key layout cluster, this process is set to standalone")
		equal(t, "entries", e.raw.XLen(e.ctx(), "__strm:example.orders.0").Val(), 2)
	})
}

func refusedWith(t *testing.T, err error, text string) {
	t.Helper()
	if conflict := (*MetaConflictError)(nil); !errors.As(err, &conflict) || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want %q", err, text)
	}
}

// A mark refuses streams that never existed, too.
func TestMarks(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		for _, tt := range []struct {
			mark Mark
			want string // "" for none
		}{
			{Mark{State: MarkMoving, To: "cluster"}, "being moved"},
			{Mark{State: MarkMoving, To: "standalone"}, "being moved"},
			{Mark{State: MarkClaimed, To: "standalone"}, "being moved"},
			{Mark{State: MarkMoved, To: "cluster"}, "key layout cluster"},
			{Mark{State: MarkMoved, To: "cluster", Target: "10.0.0.1:1"}, "its keys were moved to the redis at 10.0.0.1:1"},
			{Mark{State: MarkMoved, To: "standalone"}, ""},
			{Mark{State: MarkArrived, To: "standalone"}, ""},
		} {
			e.must(e.raw.FlushAll(e.ctx()).Err())
			e.must(e.raw.HSet(e.ctx(), "__meta:example", MarkField, tt.mark.Encode()).Err())
			_, err := e.EnsureMeta(e.ctx(), "new", orders())
			if tt.want == "" {
				e.must(err)
			} else {
				refusedWith(t, err, tt.want)
			}
			names := try(e.Streams(e.ctx())).must(t)
			shared := try(e.Shared(e.ctx(), nil)).must(t)
			if want := tt.want == ""; (len(names) == 1) != want || (len(shared.Streams) == 1) != want {
				t.Errorf("%+v: streams %v and %v", tt.mark, names, shared.Streams)
			}
		}
		for _, stored := range []string{"no json", `{"v":2,"state":"moved"}`} {
			e.must(e.raw.HSet(e.ctx(), "__meta:example", MarkField, stored).Err())
			if _, err := e.EnsureMeta(e.ctx(), "new", orders()); err == nil || !strings.Contains(err.Error(), "mark of stream move-layout") {
				t.Errorf("%s: %v", stored, err)
			}
		}
	})
}
