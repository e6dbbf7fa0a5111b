package worker

import (
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/store"
)

// A takeover may be confirmed too late to count. If another worker owns the partition before the
// next try, the lock left behind is released at once, and no sooner.
func TestALateTakeoverLeavesNoLock(t *testing.T) {
	inRig(t, nil, func(r *rig) {
		t := r.t
		m := r.x()
		place, number := m.w.client.Partition("s", "p", 5), m.claims.of(5)
		if err := m.w.client.Lock(t.Context(), place, number, 10*time.Second, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := m.w.client.Takeover(t.Context(), place, number, "", 0); err != nil {
			t.Fatal(err)
		}
		want(t, "the ownership of the next try", m.claims.of(5), number)
		if err := m.Release(t.Context(), 5); err != nil {
			t.Fatal(err)
		}
		next := store.Claim{Executor: store.NewExecutorID(), Number: 1, Expiry: 10 * time.Second}
		if err := m.w.client.Lock(t.Context(), place, next, 10*time.Second, 0); err != nil {
			t.Errorf("the next owner: %v", err)
		}
		want(t, "the ownership of a later try is another one", m.claims.of(5) != number, true)
		if err := m.Release(t.Context(), 7); err != nil {
			t.Errorf("a partition that was never tried: %v", err)
		}
	})
}
