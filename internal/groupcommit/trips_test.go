package groupcommit

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Each item is sent once, and what comes during trips shares the next ones, within the limit.
func TestTripsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var trips, most, sent atomic.Int64
		g := &Trips[*atomic.Int64]{
			Bytes: func(*atomic.Int64) int { return 10 },
			Limit: Load{Items: 100, Bytes: 300},
			Send: func(_ context.Context, items []*atomic.Int64) {
				trips.Add(1)
				most.Store(max(most.Load(), int64(len(items))))
				for _, n := range items {
					n.Add(1)
				}
				time.Sleep(time.Millisecond)
				sent.Add(int64(len(items)))
			},
		}
		items := make([]atomic.Int64, 1000)
		var all sync.WaitGroup
		for i := range items {
			all.Go(func() {
				g.Do(t.Context(), &items[i])
				if items[i].Load() != 1 {
					t.Errorf("item %d was sent %d times when Do returned", i, items[i].Load())
				}
			})
		}
		all.Wait()
		if sent.Load() != 1000 || most.Load() != 30 || trips.Load() > 60 {
			t.Errorf("%d sent in %d trips, of %d at most", sent.Load(), trips.Load(), most.Load())
		}
		began := time.Now()
		g.Do(t.Context(), new(atomic.Int64))
		took := time.Since(began)
		synctest.Wait()
		g.mu.Lock()
		defer g.mu.Unlock()
		if took != time.Millisecond || g.inFlight != 0 || len(g.queue) != 0 {
			t.Errorf("one alone took %v, then %d trips are under way, and %d wait", took, g.inFlight, len(g.queue))
		}
	})
}

// A caller alone sends under its own context.
func TestALoneTripIsTheCallers(t *testing.T) {
	type key struct{}
	g := &Trips[int]{Bytes: func(int) int { return 0 }, Limit: Load{1, 1}, Send: func(ctx context.Context, _ []int) {
		if ctx.Value(key{}) != "mine" {
			t.Error("another context")
		}
	}}
	g.Do(context.WithValue(t.Context(), key{}, "mine"), 1)
	g.Do(context.WithValue(t.Context(), key{}, "mine"), 2)
}
