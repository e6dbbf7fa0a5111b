package conformance

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// gate blocks iterations while it is closed.
type gate struct {
	entered chan string   // IDs of events whose iteration has begun
	open    chan struct{} // closed: all pass
}

// newGate blocks all iterations of the rig until the gate is open, or their context ends.
func (r *rig) newGate() *gate {
	g := &gate{entered: make(chan string, 1024), open: make(chan struct{})}
	r.hook(func(ctx context.Context, e *runnel.Event) error {
		g.entered <- e.ID
		select {
		case <-g.open:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	return g
}

func (r *rig) next(g *gate) string {
	r.t.Helper()
	select {
	case id := <-g.entered:
		return id
	case <-time.After(patience):
		r.t.Fatalf("no iteration begins within %v\n%s", patience, r.unrest())
		return ""
	}
}

// holdRead holds back the next read of a worker while a read under way takes this event.
func (r *rig) holdRead(m *member, partition int) *faultproxy.Rule {
	r.t.Helper()
	held := r.holdNext(partition, func() *faultproxy.Rule { return r.onRead(m.proxy, 1, partition).Do(faultproxy.Hold) })
	held.Wait(r.t)
	return held
}

// holdReply holds back the reply to the read that is under way when it returns. Interrupts caused
// by the event before are over by then.
func (r *rig) holdReply(m *member, partition int) *faultproxy.Rule {
	r.t.Helper()
	for range 10 {
		held := r.holdNext(partition, func() *faultproxy.Rule { return r.onRead(m.proxy, 1, partition).Do(faultproxy.HoldReply(nil)) })
		r.eventually("a read is under way", func() bool { return held.Hits() > 0 })
		r.awaitRead()
		select {
		case <-held.Fired(): // interrupted, and with nothing
			held.Release()
		case <-time.After(100 * time.Millisecond):
			return held
		}
	}
	r.t.Fatal("each read was interrupted")
	return nil
}

// holdNext sets a rule for the next read while one is under way, and ends that one with an event.
// If the read ended otherwise, because the partition was gained just before, the rule has met the
// read that should bring the event; holdNext then tries again.
func (r *rig) holdNext(partition int, rule func() *faultproxy.Rule) *faultproxy.Rule {
	r.t.Helper()
	for range 10 {
		r.await(partition, r.add(partition, 1)...)
		r.awaitRead()
		held := rule()
		id := r.add(partition, 1)[0]
		select {
		case <-r.event(partition, id):
			return held
		case <-time.After(500 * time.Millisecond):
			held.Release()
			r.await(partition, id)
		}
	}
	r.t.Fatal("each read was ended by something else")
	return nil
}

// awaitRead waits until a read blocks on the server.
func (r *rig) awaitRead() {
	r.t.Helper()
	r.eventually("a read waits on the server", func() bool {
		waiting := 0
		for client := range strings.Lines(r.rdb.ClientList(context.Background()).Val()) {
			if strings.Contains(client, "cmd="+strings.ToLower(readCommand())+" ") && strings.Contains(client, "flags=b") {
				waiting++
			}
		}
		return waiting > r.followers()
	})
}

// A read that was queued while the server was frozen is executed after its client has given up.
func TestFrozenServer(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, 10*time.Second)
	m, id := r.startReady("w1")
	held := r.holdRead(m, 0)
	r.add(0, 3)
	r.srv.Freeze()
	held.Release()
	<-time.After(3300 * time.Millisecond) // the read's own deadline is at 3 s
	r.srv.Thaw()
	r.add(0, 3)
	r.finishUndisturbed(m, id)
}

// A read is executed long after its client has given up. The partition's buffer is full, so that no
// other read is under way.
func TestReadDeliveredLate(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, 10*time.Second)
	r.options.Prefetch = 1
	m, id := r.startReady("w1")
	held := r.holdRead(m, 0)
	m.proxy.CutAll()
	// A later read was answered, so the reader has recovered.
	r.await(0, r.add(0, 1)...)
	g := r.newGate()
	r.add(0, 4)
	r.next(g)
	r.eventually("the buffer is full", func() bool { return r.given(m, 0, 2) })
	pending := r.groupsOf(0)[0].Pending
	held.Release()
	redistest.Within(late, func() bool { return r.groupsOf(0)[0].Pending != pending })
	close(g.open)
	r.finishUndisturbed(m, id)
}

// A worker releases a partition and takes it back while the reply to a read of the first ownership
// is still under way.
func TestReplyOfEarlierTenure(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, 10*time.Second)
	m, id := r.startReady("w1")
	f, p := r.away()
	r.back(m, f, p)
	first := r.rdb.HGet(t.Context(), r.own(p), "tenure").Val()
	held := r.holdReply(m, p)
	r.add(p, 3)
	held.Wait(t)
	before := m.releases()
	f = r.join()
	r.eventually("the release has begun", func() bool { return m.releases() > before })
	f.leave()
	// No executor can take the partition while the reply is out. Without waiting for the reply, the
	// worker would have it back at once, and read it.
	redistest.Within(700*time.Millisecond, func() bool {
		now := r.rdb.HGet(t.Context(), r.own(p), "tenure").Val()
		return now != first && r.holder(p) == id && m.app.Ready() == nil
	})
	held.Release()
	r.add(p, 3)
	r.finishUndisturbed(m, id)
	if strings.Contains(m.output.String(), "deliveries forgotten") {
		t.Error("a reply of the ownership before has reached this one")
	}
}

// A worker releases a partition with unprocessed events and takes it back: its old group delivers
// them again.
func TestOwnGroupAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, 10*time.Second)
	m, id := r.startReady("w1")
	f, p := r.away()
	r.back(m, f, p)
	g := r.newGate()
	r.add(p, 5)
	r.next(g)
	r.eventually("all are delivered", func() bool { return r.given(m, p, 5) })
	before := m.releases()
	f = r.join()
	r.eventually("the release has begun", func() bool { return m.releases() > before })
	close(g.open)
	r.eventually("the lock is released", func() bool { return r.get(r.lock(p)) == "" })
	if n := r.undone(p); n != 4 {
		t.Errorf("after the release %d events are not done, want the 4 that were not begun", n)
	}
	r.back(m, f, p)
	r.add(p, 1)
	r.finishUndisturbed(m, id)
}

// An entry deleted while the reply that brings it is lost comes back without data. It is skipped
// and acked. By position it does not come back, and counts as lost once what is behind it was read.
func TestEntryGone(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, 10*time.Second)
	m, id := r.startReady("w1")
	held := r.holdReply(m, 0)
	gone := r.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: r.partition(0), Values: []any{"data", "never seen"}}).Val()
	held.Wait(t)
	r.add(0, 3)
	r.rdb.XDel(t.Context(), r.partition(0), gone)
	m.proxy.CutAll()
	r.rest()
	lost := func() int {
		return strings.Count(m.output.String(), "event lost") + strings.Count(m.output.String(), "events lost")
	}
	r.eventually("the lost event is reported", func() bool { return lost() > 0 })
	if n := lost(); n != 1 {
		t.Errorf("the lost event is reported %d times, want once", n)
	}
	r.finishUndisturbed(m, id)
}
