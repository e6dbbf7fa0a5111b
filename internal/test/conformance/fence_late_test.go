package conformance

import (
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/redistest"
)

// late is how long a released request may take to do damage.
const late = 300 * time.Millisecond

// A delayed release of the lock, executed in a later ownership of the same executor, leaves that
// ownership's lock alone.
func TestReleaseDeliveredLate(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, 3*time.Second)
	r.warm()
	m, id := r.startReady("w1")
	f, p := r.away()
	r.back(m, f, p)
	held := r.onUnlock(m.proxy, 1, p).Do(hold)
	f = r.join()
	held.Wait(t)
	m.proxy.CutAll() // the worker releases once more, and that arrives
	r.eventually("the lock is released", func() bool { return r.get(r.lock(p)) == "" })
	r.back(m, f, p)
	lock := r.get(r.lock(p))
	held.Release()
	if redistest.Within(late, func() bool { return r.get(r.lock(p)) != lock }) {
		t.Errorf("a release of an earlier ownership made the lock %q, it was %q", r.get(r.lock(p)), lock)
	}
	r.await(p, r.add(p, 3)...)
	r.finishUndisturbed(m, id)
}

// A delayed takeover changes nothing when executed after its sender has taken the partition over by
// another try, or in a later ownership.
func TestTakeoverDeliveredLate(t *testing.T) {
	for _, later := range []bool{false, true} {
		t.Run(map[bool]string{false: "same ownership", true: "next ownership"}[later], func(t *testing.T) {
			t.Parallel()
			r := newRig(t, 2, 3*time.Second)
			r.warm()
			m, id := r.startReady("w1")
			f, p := r.away()
			held := r.onTakeover(m.proxy, 1, p).Do(hold)
			f.leave()
			held.Wait(t)
			m.proxy.CutAll() // the worker tries again, and that arrives
			r.ready(m)
			r.await(p, r.add(p, 2)...)
			if later {
				f, p = r.away()
				r.back(m, f, p)
			}
			g := r.newGate()
			r.add(p, 3)
			r.next(g)
			r.eventually("all are delivered", func() bool { return r.given(m, p, 3) })
			before := r.rdb.HGetAll(t.Context(), r.own(p)).Val()
			held.Release()
			var now map[string]string
			if redistest.Within(late, func() bool {
				now = r.rdb.HGetAll(t.Context(), r.own(p)).Val()
				return now["epoch"] != before["epoch"] || now["tenure"] != before["tenure"]
			}) {
				t.Errorf("a late takeover made the ownership %v, it was %v", now, before)
			}
			if groups := r.groupsOf(p); len(groups) != 1 || !r.given(m, p, 3) || r.undone(p) != 3 {
				t.Errorf("a late takeover left the groups %v and %d undone, want one group and 3", groups, r.undone(p))
			}
			close(g.open)
			r.finishUndisturbed(m, id)
		})
	}
}
