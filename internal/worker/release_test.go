package worker

import (
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/store"
)

// A takeover may be confirmed too late to count. If the partition is another worker's
// before the next try, the lock that it left is given back at once, and no sooner.
func TestALateTakeoverLeavesNoLock(t *testing.T) {
	inRig(t, nil, func(r *rig) {
		t := r.t
		i := r.x()
		place, number := i.w.client.Place("s", "p", 5), i.claim(5)
		if err := i.w.client.Lock(t.Context(), place, number, 10*time.Second, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := i.w.client.Takeover(t.Context(), place, number, "", 0); err != nil {
			t.Fatal(err)
		}
		want(t, "the tenure of the next try", i.claim(5), number)
		if err := i.Release(t.Context(), 5); err != nil {
			t.Fatal(err)
		}
		next := store.Tenure{Executor: store.NewExecutorID(), Number: 1, Expiry: 10 * time.Second}
		if err := i.w.client.Lock(t.Context(), place, next, 10*time.Second, 0); err != nil {
			t.Errorf("the next owner: %v", err)
		}
		want(t, "the tenure of a later try is another one", i.claim(5) != number, true)
		if err := i.Release(t.Context(), 7); err != nil {
			t.Errorf("a partition that was never tried: %v", err)
		}
	})
}
