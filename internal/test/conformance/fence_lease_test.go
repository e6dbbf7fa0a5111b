package conformance

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A disconnected worker stops in time: when its lock expires, and another owner begins at that
// instant, it has begun its last iteration. The reply to the refresh before came late: the lease
// counts from when the refresh was sent.
func TestLeaseEndsBeforeTheLock(t *testing.T) {
	t.Parallel()
	const expiry = 5 * time.Second
	r := newRig(t, 1, expiry)
	r.options.Prefetch = 5000
	r.warm()
	m := r.start("w1")
	r.ready(m)
	r.hook(func(ctx context.Context, e *runnel.Event) error {
		<-time.After(5 * time.Millisecond)
		return nil
	})
	r.add(0, 3000) // enough for twice the expiry
	r.eventually("the buffer holds them", func() bool { return appview.Of(m.app).Stats().Processors[0].Counters.Fetched.Load() > 2900 })
	refresh := r.onRefresh(m.proxy, 1).Do(faultproxy.HoldReply(nil))
	refresh.Wait(t)
	<-time.After(1400 * time.Millisecond) // a refresh is given up after a third of the expiry
	refresh.Release()
	<-time.After(20 * time.Millisecond)
	r.fault("w1", history.Cut)
	m.proxy.Pause()
	place := r.place(0)
	tenure := store.Claim{Executor: store.NewExecutorID(), Number: 1}
	if !redistest.Within(2*expiry, func() bool { return r.client.Lock(t.Context(), place, tenure, hour, 0) == nil }) {
		t.Fatal("the lock does not expire")
	}
	if _, err := r.client.Takeover(t.Context(), place, tenure, "", 0); err != nil {
		t.Fatal(err)
	}
	begun := time.Now().UnixNano()
	r.eventually("the worker knows", func() bool { return strings.Contains(m.output.String(), "partitions lost") })
	last := int64(0)
	for _, rec := range r.log.Records() {
		if rec.Kind == history.Begin && rec.Worker == "w1" {
			last = max(last, rec.At)
		}
	}
	if last >= begun {
		t.Errorf("an iteration began %v after another owner had begun", time.Duration(last-begun))
	}
	if begun-last > int64(2*expiry/5) {
		t.Errorf("the last iteration began %v before the lock expired: the late reply did not count, the test shows nothing", time.Duration(begun-last))
	}
	t.Logf("the last iteration began %v before the lock expired", time.Duration(begun-last).Round(time.Millisecond))
	r.hook(nil)
	m.proxy.Resume()
	if err := r.client.Unlock(t.Context(), place, tenure); err != nil { // a second crash in a row would have each ack awaited
		t.Fatal(err)
	}
	r.finish()
}

// The context of a function that waits in a disconnected worker ends with the lease.
func TestContextEndsWithTheLease(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, time.Second)
	m := r.start("w1")
	r.ready(m)
	g := r.newGate()
	r.add(0, 3)
	r.next(g)
	r.fault("w1", history.Cut)
	m.proxy.Pause()
	r.eventually("the function saw ErrLost", func() bool { return m.lost.Load() == 1 })
	close(g.open)
	m.proxy.Resume()
	r.finish()
}

// A deleted lock is not silently obtained again: the owner gives up, joins under another ID and
// takes the partition over in a new ownership.
func TestLostLockIsNotTakenAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, time.Second)
	m, id := r.startReady("w1")
	r.await(0, r.add(0, 1)...)
	r.fault("w1", history.Lost)
	was := r.get(r.lock(0))
	r.rdb.Del(t.Context(), r.lock(0))
	r.eventually("an executor has the lock", func() bool { return r.get(r.lock(0)) != "" })
	if now := r.get(r.lock(0)); now == was {
		t.Errorf("the lost lock was taken again in the same ownership: %s", now)
	}
	r.await(0, r.add(0, 1)...)
	if now := r.executor(m); now == id {
		t.Errorf("the executor ID is still %s", now)
	}
	r.finish()
}

// A slow function and a joining worker: the partition stays until the function returns, even long
// past the expiry, and is then handed over cleanly.
func TestSlowReleaseKeepsItsLease(t *testing.T) {
	t.Parallel()
	const expiry = 4 * time.Second
	r := newRig(t, 2, expiry)
	a, id := r.startReady("a")
	g := r.newGate()
	first := []string{r.add(0, 2)[0], r.add(1, 2)[0]}
	r.next(g)
	r.next(g)
	b := r.start("b")
	r.eventually("the release has begun", func() bool { return r.shares() == "a=1 b=1" })
	timer := time.After(5 * expiry / 2)
	if redistest.Within(2*expiry, func() bool { return r.holder(0) != id || r.holder(1) != id }) {
		t.Error("a partition changed hands while its function ran")
	}
	<-timer
	close(g.open)
	r.await(0, first[0])
	r.await(1, first[1])
	r.ready(b)
	if report := r.finishUndisturbed(a, id); report.Clean != 1 || report.Repeats != 0 {
		t.Errorf("%d clean handovers and %d repeats, want 1 and 0", report.Clean, report.Repeats)
	}
}
