package conformance

import (
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A partition's consumer group is destroyed while its lock moves to another worker, which begins at
// the stored floor.
func TestGroupDestroyedInHandover(t *testing.T) {
	for _, before := range []bool{true, false} {
		t.Run(map[bool]string{true: "before the takeover", false: "after the takeover"}[before], func(t *testing.T) {
			t.Parallel()
			r := newRig(t, 2, calm)
			r.warm()
			a, id := r.startReady("a")
			for p := range 2 {
				ids := r.add(p, 5)
				r.await(p, ids...)
				r.eventually("the committed position is stored", func() bool { return r.rdb.HGet(t.Context(), r.own(p), "floor").Val() == ids[4] })
			}
			proxy := faultproxy.Start(t, r.srv.Addr())
			held := []*faultproxy.Rule{r.onTakeover(proxy, 1, 0), r.onTakeover(proxy, 1, 1)}
			for _, rule := range held {
				if before {
					rule.Do(hold)
				} else {
					rule.Do(faultproxy.HoldReply(nil))
				}
			}
			b := r.startVia("b", proxy)
			p := r.awaitHeld(held)
			for _, g := range r.groupsOf(p) {
				r.rdb.XGroupDestroy(t.Context(), r.partition(p), g.Name)
			}
			ids := r.add(p, 3)
			held[p].Release()
			r.await(p, ids...)
			r.ready(b)
			r.rest()
			r.undisturbed(a, id)
			held[1-p].Release()
			r.finish()
		})
	}
}

// awaitHeld returns the partition whose rule has fired first.
func (r *rig) awaitHeld(held []*faultproxy.Rule) int {
	r.t.Helper()
	select {
	case <-held[0].Fired():
		return 0
	case <-held[1].Fired():
		return 1
	case <-time.After(patience):
		r.t.Fatal("no such request comes")
		return 0
	}
}

// One group of 16 is destroyed while events flow. Only that partition is taken over again, at the
// right position; the others do not pause.
func TestOneGroupOfManyDestroyed(t *testing.T) {
	const partitions, destroyed = 16, 5
	r := newRig(t, partitions, 10*time.Second)
	stop := r.feed(2 * time.Millisecond)
	m, id := r.startReady("w1")
	for p := range partitions {
		r.await(p, r.add(p, 10)...)
	}
	r.fault("w1", history.Lost)
	at := time.Now()
	r.rdb.XGroupDestroy(t.Context(), r.partition(destroyed), r.groupsOf(destroyed)[0].Name)
	for p := range partitions {
		r.await(p, r.add(p, 10)...)
	}
	stop()
	r.rest()
	if now := r.executor(m); now != id {
		t.Errorf("the executor ID is now %s, it was %s", now, id)
	}
	if n := m.lost.Load(); n != 1 {
		t.Errorf("%d functions saw ErrLost, want that of the destroyed group", n)
	}
	records := r.log.Records()
	worst := time.Duration(0)
	for p := range partitions {
		gap := longestGap(records, p, at.UnixNano(), at.Add(500*time.Millisecond).UnixNano())
		if p == destroyed {
			t.Logf("the partition whose group was destroyed stood still for %v", gap)
			continue
		}
		worst = max(worst, gap)
		if n := epochs(records, p); n != 1 {
			t.Errorf("partition %d had %d epochs, want 1", p, n)
		}
	}
	t.Logf("the longest pause of the %d others was %v (promised: 50ms)", partitions-1, worst)
	r.finish()
}

// longestGap returns the longest time between two iterations of a partition within the span.
func longestGap(records []history.Record, partition int, from, to int64) time.Duration {
	last, longest := from, int64(0)
	for _, rec := range records {
		if rec.Kind != history.End || rec.Partition != partition || rec.At < from {
			continue
		}
		longest = max(longest, min(rec.At, to)-last)
		last = rec.At
		if rec.At > to {
			return time.Duration(longest)
		}
	}
	return time.Duration(longest)
}

func epochs(records []history.Record, partition int) int {
	seen := map[int64]bool{}
	for _, rec := range records {
		if rec.Kind == history.Begin && rec.Partition == partition {
			seen[rec.Epoch] = true
		}
	}
	return len(seen)
}

// An ack whose first tries failed is not sent in the next ownership, where its event is being
// processed again.
func TestAckOfEarlierTenure(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, 10*time.Second)
	m, id := r.startReady("w1")
	r.await(0, r.add(0, 1)...)
	failed := r.onAck(m.proxy, 1, 0).Do(faultproxy.CloseBefore)
	for n := 2; n <= 6; n++ {
		r.onAck(m.proxy, n, 0).Do(faultproxy.CloseBefore)
	}
	event := r.add(0, 1)[0]
	r.await(0, event)
	failed.Wait(t)
	r.fault("w1", history.Lost)
	g := r.newGate()
	r.rdb.XGroupDestroy(t.Context(), r.partition(0), r.groupsOf(0)[0].Name)
	r.next(g)
	// The seventh try would come within two seconds.
	if redistest.Within(2500*time.Millisecond, func() bool { return r.undone(0) == 0 }) {
		t.Errorf("event %s was acked while its second iteration runs", event)
	}
	close(g.open)
	r.rest()
	if now := r.executor(m); now != id {
		t.Errorf("the executor ID is now %s, it was %s", now, id)
	}
	r.finish()
}

// If a partition is handed over while an ack is under way, the ack arrives first.
func TestAcksBeforeRelease(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, 3*time.Second)
	a, id := r.startReady("a")
	slow := []*faultproxy.Rule{r.onAck(a.proxy, 1, 0).Do(hold), r.onAck(a.proxy, 1, 1).Do(hold)}
	for p := range 2 {
		r.await(p, r.add(p, 1)...)
	}
	r.awaitHeld(slow)
	b := r.start("b")
	r.eventually("the release has begun", func() bool { return r.shares() == "a=1 b=1" })
	// A release that does not wait for the acks would have happened by now.
	redistest.Within(late, func() bool {
		next := r.executor(b)
		return next != "" && (r.holder(0) == next || r.holder(1) == next)
	})
	for _, rule := range slow {
		rule.Release()
	}
	r.ready(b)
	if report := r.finishUndisturbed(a, id); report.Repeats != 0 {
		t.Errorf("%d events were processed again", report.Repeats)
	}
}

// holder returns the executor that holds a partition's lock.
func (r *rig) holder(partition int) string {
	id, _, _ := strings.Cut(r.get(r.lock(partition)), ":")
	return id
}
