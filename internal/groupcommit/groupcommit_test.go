package groupcommit

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// After a crowd a caller that is alone again is soon sent without the queue.
func TestOneCallerAfterACrowdIsAloneAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trips := 0
		var mu sync.Mutex
		g := &Group[int, int]{
			Send: func(_ context.Context, items []int) []int {
				time.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				trips++
				return items
			},
			Weigh: func(items []int) (Load, bool) { return Load{Items: len(items)}, false },
			Limit: Load{Items: 100},
		}
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				if got, err := g.Do(t.Context(), []int{i}); err != nil || len(got) != 1 || got[0] != i {
					t.Errorf("item %d: %v, %v", i, got, err)
				}
			})
		}
		all.Wait()
		if trips > AloneAtOnce+sharedAtOnce || g.recentlyShared == 0 {
			t.Fatalf("%d trips for 100 items, shared lately: %d", trips, g.recentlyShared)
		}
		for range sharedLasts {
			if _, err := g.Do(t.Context(), []int{0}); err != nil {
				t.Fatal(err)
			}
		}
		if g.recentlyShared != 0 || g.inFlight != 0 || g.Waiting() != 0 {
			t.Errorf("shared lately: %d, under way: %d, waiting: %d", g.recentlyShared, g.inFlight, g.Waiting())
		}
	})
}
