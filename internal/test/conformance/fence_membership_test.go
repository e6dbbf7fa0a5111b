package conformance

import (
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/faultproxy"
)

// A worker's heartbeat vanishes while it still refreshes its locks, and control messages are lost.
// It is taken for dead, hands over, and joins again.
func TestHeartbeatLost(t *testing.T) {
	t.Parallel()
	r := newRig(t, 4, calm)
	deaf := func() *faultproxy.Proxy {
		p := faultproxy.Start(t, r.srv.Addr())
		p.On("XADD", faultproxy.Every).Containing("__ctrl:").Do(faultproxy.Answer("$3\r\n1-1\r\n"))
		return p
	}
	stop := r.feed(5 * time.Millisecond)
	a, b := r.startVia("a", deaf()), r.startVia("b", deaf())
	first, other := r.ready(a), r.ready(b)
	r.eventually("both have their share", func() bool { return r.shares() == "a=2 b=2" })
	beat := r.keys.Beat(r.stream, r.processor, first)
	// None is written again: a look just after each heartbeat would never find it gone.
	unwritten := a.proxy.On("EVALSHA", faultproxy.Every).Containing(beat).Do(faultproxy.Answer("*2\r\n:0\r\n:1\r\n"))
	r.eventually("the worker without a heartbeat is removed", func() bool {
		r.rdb.Del(t.Context(), beat)
		_, member := r.group().Executors[first]
		return !member
	})
	unwritten.Release()
	r.eventually("it joins under another ID", func() bool {
		id := r.executor(a)
		return id != "" && id != first
	})
	r.eventually("both have their share again", func() bool { return r.shares() == "a=2 b=2" && r.unowned() == 0 })
	if n := r.rdb.Exists(t.Context(), r.keys.Control(r.stream, r.processor)).Val(); n != 0 {
		t.Error("a control message came through: the test shows nothing")
	}
	stop()
	r.rest()
	r.undisturbed(b, other)
	if n := a.lost.Load(); n > 0 {
		t.Errorf("%d functions saw ErrLost: a member that was removed hands over in peace", n)
	}
	r.finish()
}

// The stored membership is set back: an executor missing from it joins again, and the others
// follow.
func TestMembershipSetBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, 4, time.Second)
	r.busy = true
	stop := r.feed(5 * time.Millisecond)
	a := r.start("a")
	r.ready(a)
	alone := r.get(r.membership())
	b, first := r.startReady("b")
	r.eventually("both have their share", func() bool { return r.shares() == "a=2 b=2" && r.unowned() == 0 })
	r.rdb.Set(t.Context(), r.membership(), alone, 0)
	r.eventually("the one who is absent joins under another ID", func() bool {
		id := r.executor(b)
		return id != "" && id != first
	})
	r.eventually("both have their share again", func() bool { return r.shares() == "a=2 b=2" && r.unowned() == 0 })
	stop()
	r.finish()
}

// A membership with a smaller number is followed like any other.
func TestOlderGenerationIsFollowed(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, time.Second)
	a := r.start("a")
	r.ready(a)
	f := r.join()
	with := r.get(r.membership())
	p := f.assigned()[0]
	r.eventually("the partition is given up", func() bool { return r.get(r.lock(p)) == "" })
	f.leave()
	r.eventually("it is taken back", func() bool { return r.holder(p) == r.executor(a) })
	r.rdb.Set(t.Context(), r.membership(), with, 0)
	r.eventually("it is given up again", func() bool { return r.get(r.lock(p)) == "" })
	f.leave()
	r.finish()
}

// A change of the membership that arrives after another one is computed again from the newer value.
func TestChangesDoNotOverwrite(t *testing.T) {
	t.Parallel()
	r := newRig(t, 3, time.Second)
	r.warm()
	a := r.start("a")
	r.ready(a)
	proxy := faultproxy.Start(t, r.srv.Addr())
	swap := r.onSwap(proxy, 1).Do(hold)
	b := r.startVia("b", proxy)
	swap.Wait(t)
	f := r.join() // no executor has its admin lock
	swap.Release()
	r.ready(b)
	if len(f.assigned()) == 0 {
		t.Errorf("who joined first is no member after the second join: %v", r.group().IDs())
	}
	f.leave()
	r.finish()
}

// shares returns how many partitions each worker is assigned, in the order of names.
func (r *rig) shares() string {
	var a, b int
	for _, e := range r.group().Executors {
		switch e.Worker {
		case "a":
			a += len(e.Partitions)
		case "b":
			b += len(e.Partitions)
		}
	}
	return "a=" + string(rune('0'+a)) + " b=" + string(rune('0'+b))
}

// unowned returns how many partitions are not held by their assigned owner.
func (r *rig) unowned() (n int) {
	for id, e := range r.group().Executors {
		for _, p := range e.Partitions {
			if r.holder(p) != id {
				n++
			}
		}
	}
	return n
}
