package stage_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/runneltest"
	"github.com/runnel-go/runnel/stage"
)

// A shelf is a Store in memory that can be made to fail.
type shelf struct {
	mu    sync.Mutex
	items map[string]stage.Entity[item]
	down  error
	loads [][]string
	next  int64
}

func (s *shelf) put(values ...item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		s.next++
		s.items[v.ID] = stage.Entity[item]{Value: v, Version: s.next}
	}
}

func (s *shelf) Load(_ context.Context, ids []string) (found []stage.Entity[item], err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads = append(s.loads, ids)
	for _, id := range ids {
		if e, there := s.items[id]; there {
			found = append(found, e)
		}
	}
	return found, s.down
}

func (s *shelf) Save(ctx context.Context, e stage.Entity[item]) (int64, error) {
	if err := runneltest.Gate(ctx); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.items[e.Value.ID]; s.down != nil || old.Version != e.Version {
		return 0, errors.Join(s.down, stage.ErrConflict)
	}
	s.next++
	s.items[e.Value.ID] = stage.Entity[item]{Value: e.Value, Version: s.next}
	return s.next, nil
}

func (s *shelf) Delete(_ context.Context, id string, version int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, there := s.items[id]
	switch {
	case !there:
		return stage.ErrNotFound
	case old.Version != version:
		return stage.ErrConflict
	}
	delete(s.items, id)
	return nil
}

func (s *shelf) ids() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.items))
}

// inStore is inRig for a set whose items are on a shelf.
func inStore(t *testing.T, declare func(r *rig, s items), fn func(r *rig, on *shelf)) {
	t.Helper()
	r, on := &rig{T: t}, &shelf{items: map[string]stage.Entity[item]{}}
	opts := &stage.Options{Partitions: 3, Lease: 2 * time.Second}
	of := func(app *runnel.App) items {
		s := stage.NewExternal(app, "items", func(e item) string { return e.ID }, on, opts)
		declare(r, s)
		return s
	}
	runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
		app := runnel.New("shop", o)
		of(app)
		return app
	}, func(c *runneltest.Cluster) {
		r.c, r.began = c, time.Now()
		r.app = runnel.New("shop", c.Options("outside"))
		defer r.app.Close()
		r.set = of(r.app)
		fn(r, on)
	})
}

// Entities of a Store reach their fixpoint, whatever is changed beside it, and are touched by their IDs.
func TestEntitiesOfAStoreReachTheirFixpoint(t *testing.T) {
	var on *shelf
	inStore(t, func(r *rig, s items) {
		copies(r, s, "copy", time.Second, nil)
		s.Stage("delete", func(e item) bool { return e.Text == "delete" }, func(context.Context, *item) (stage.Result, error) {
			return stage.Deleted, nil
		}, nil)
		s.Stage("wait", func(e item) bool { return e.Text == "wait" }, func(context.Context, *item) (stage.Result, error) {
			return stage.Untouched.After(time.Hour), nil
		}, nil)
	}, func(r *rig, shelf *shelf) {
		on = shelf
		r.start("w")
		ctx := r.c.Context()
		on.put(item{ID: "a", A: 1}, item{ID: "b", A: 1}, item{ID: "c", A: 1, Text: "delete"}, item{ID: "d", Text: "wait"})
		r.must(r.set.Touch(ctx, "a", "b", "c", "d", "none"))
		r.c.Sleep(500 * time.Millisecond)
		on.put(item{ID: "a", A: 5}) // a conflict
		r.c.Sleep(10 * time.Second)
		if e := r.get("a").Value; e.B != 5 {
			t.Errorf("a: %+v", e)
		}
		if got := fmt.Sprint(on.ids()); got != "[a b d]" || r.keys() != "visit:shop.items.wait" {
			t.Errorf("stored %s, there is %s", got, r.keys())
		}
		on.put(item{ID: "b", A: 7}) // and its touch is forgotten
		all := func(yield func(string, error) bool) {
			for _, id := range on.ids() {
				if !yield(id, nil) {
					return
				}
			}
		}
		if _, err := r.set.TouchAll(ctx, nil); err == nil {
			t.Error("touched all without IDs")
		}
		n, err := r.set.TouchAll(ctx, &stage.TouchAllOptions{IDs: all, Rate: 2})
		if n != 3 || err != nil {
			t.Errorf("touched %d, %v", n, err)
		}
		r.c.Sleep(10 * time.Second)
		if e := r.get("b").Value; e.B != 7 {
			t.Errorf("b: %+v", e)
		}
		if err := r.set.Put(ctx, item{ID: "x"}); err == nil {
			t.Error("put into a Store")
		}
	})
}

// While the Store is down visits wait, uncharged, and go on when it is back.
func TestAStoreThatIsDownCostsNoAttempts(t *testing.T) {
	inStore(t, func(r *rig, s items) { copies(r, s, "copy", 0, nil) }, func(r *rig, on *shelf) {
		r.start("w")
		on.put(item{ID: "a", A: 1})
		on.down = errors.New("database is down")
		r.must(r.set.Touch(r.c.Context(), "a"))
		r.c.Sleep(time.Minute)
		r.wants()
		on.mu.Lock()
		loads := len(on.loads)
		on.down = nil
		on.mu.Unlock()
		if loads > 130 {
			t.Errorf("%d loads in a minute", loads)
		}
		r.rests()
		if e := r.get("a").Value; e.B != 1 || len(r.noted()) != 1 {
			t.Errorf("%+v, calls %v", e, r.noted())
		}
	})
}

// Stages over a Store that undo each other are slowed down.
func TestLoopsOverAStoreAreSlowedDown(t *testing.T) {
	tier.Sequential(t)
	var calls atomic.Int64
	inStore(t, func(r *rig, s items) {
		s.Stage("flip", nil, func(_ context.Context, e *item) (stage.Result, error) {
			calls.Add(1)
			e.A = 1 - e.A
			return stage.Updated, nil
		}, nil)
	}, func(r *rig, on *shelf) {
		r.start("w")
		on.put(item{ID: "a"})
		r.must(r.set.Touch(r.c.Context(), "a"))
		r.c.Sleep(4 * time.Minute)
		if n := calls.Load(); n < 100 || n > 4*130 {
			t.Errorf("%d calls in four minutes", n)
		}
	})
}

// What a killed worker has stored and not ended is found by the function that runs again.
func TestAStoreSurvivesKilledWorkers(t *testing.T) {
	inStore(t, func(r *rig, s items) { copies(r, s, "copy", 50*time.Millisecond, nil) }, func(r *rig, on *shelf) {
		var all []string
		for n := range 30 {
			id := fmt.Sprint(n)
			on.put(item{ID: id, A: n + 1})
			all = append(all, id)
		}
		r.must(r.set.Touch(r.c.Context(), all...))
		for n := range 6 {
			w := r.c.Start(fmt.Sprint("w", n))
			r.c.Sleep(time.Duration(70*n) * time.Millisecond)
			w.Kill()
		}
		r.start("last")
		r.rests()
		for _, id := range all {
			if e := r.get(id).Value; e.B != e.A {
				t.Errorf("%+v", e)
			}
		}
	})
}
