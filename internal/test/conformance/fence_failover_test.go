package conformance

import (
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// newReplicated is newRig with a replica, whose link can be held back.
func newReplicated(t *testing.T, partitions int, expiry time.Duration) (r *rig, link *faultproxy.Proxy, replica *redistest.Server) {
	r = newRig(t, partitions, expiry)
	link = faultproxy.Start(t, r.srv.Addr())
	replica = r.srv.ReplicaVia(t, link.Addr())
	// A worker that knows one server only ends its connections by their IDs. The test's own client
	// must have other IDs, since it would repeat what was cut off.
	for range 100 {
		c := replica.Client(t)
		if err := c.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
	return r, link, replica
}

// promote makes the replica the master. The worker reaches it with its next connection after CutAll
// and Resume of its proxy.
func (r *rig) promote(m *member, replica *redistest.Server) {
	m.proxy.SetTarget(replica.Addr())
	m.proxy.Pause()
	replica.Promote()
	r.srv, r.rdb = replica, replica.Client(r.t)
}

// A replica that lacks the last acks becomes the master: processed events are acked again, and not
// processed again. By position no acks are kept to be sent again: the partition is taken over again and what
// was done since is repeated, at once, though nothing new comes.
func TestReplicaBehindByAcks(t *testing.T) {
	t.Parallel()
	const acks = 7
	r, link, replica := newReplicated(t, 2, 3*time.Second)
	m, id := r.startReady("w1")
	for p := range 2 {
		r.await(p, r.add(p, 3)...)
	}
	r.rest()
	g := r.newGate()
	ids := r.add(0, acks)
	r.next(g)
	r.eventually("all are delivered", func() bool { return r.given(m, 0, acks) })
	replica.WaitSync(t, r.srv)
	link.Pause()
	close(g.open)
	r.await(0, ids...)
	// Another rule would repeat an ack whose reply is under way.
	r.eventually("all acks are confirmed", func() bool { return r.undone(0) == 0 && unacked(m) == 0 })
	if byPosition {
		r.fault("w1", history.Lost)
	}
	r.promote(m, replica)
	if n := r.undone(0); n != acks {
		t.Errorf("%d events are not done in the replica, want the %d whose acks it lacks", n, acks)
	}
	m.proxy.CutAll()
	m.proxy.Resume()
	r.rest()
	more := []string{r.addID(0, "*"), r.addID(1, "*")}
	r.await(0, more[0])
	r.await(1, more[1])
	want := 0
	if byPosition {
		want = acks
		if now := r.executor(m); now != id {
			t.Errorf("the executor ID is now %s, it was %s", now, id)
		}
	} else {
		r.undisturbed(m, id)
	}
	if report := r.finish(); report.Repeats != want {
		t.Errorf("%d events were processed again, want %d", report.Repeats, want)
	}
}

// unacked returns how many events the member has processed without a confirmed ack.
func unacked(m *member) int { return appview.Of(m.app).Stats().Processors[0].Unacked }

// A replica that lacks the last deliveries becomes the master and delivers processed events again:
// they are processed again, in order, under another epoch.
func TestReplicaBehindByDeliveries(t *testing.T) {
	t.Parallel()
	const events = 7
	r, link, replica := newReplicated(t, 1, calm)
	m := r.start("w1")
	r.ready(m)
	r.await(0, r.add(0, 3)...)
	r.rest()
	m.proxy.Pause()
	ids := r.add(0, events)
	replica.WaitSync(t, r.srv)
	link.Pause()
	m.proxy.Resume()
	r.await(0, ids...)
	r.eventually("all are acked", func() bool { return r.undone(0) == 0 })
	r.fault("", history.Failover)
	r.promote(m, replica)
	m.proxy.CutAll()
	m.proxy.Resume()
	r.await(0, r.add(0, 3)...)
	r.rest()
	// Fewer if the first was delivered in time, or the acks were under way and are repeated. By position the last
	// events may come before anything shows that the server is behind, and are repeated as well.
	most := events
	if byPosition {
		most += 3
	}
	if report := r.finish(); report.Repeats > most {
		t.Errorf("%d events were processed again, want at most %d: the replica knows no delivery of %d", report.Repeats, most, events)
	}
}

// Two servers are masters for a moment, and each appends an event: the new one y, then the old one
// x, which is processed. A worker that moves to the new master has a position after y. It processes
// y all the same, whatever happens to the reply that delivers y.
func TestAnIDBelowThePosition(t *testing.T) {
	late := faultproxy.HoldReply(nil)
	for name, action := range map[string]*faultproxy.Action{"in time": nil, "lost": &faultproxy.CloseAfter, "late": &late} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, link, replica := newReplicated(t, 1, calm)
			m := r.start("w1")
			r.ready(m)
			r.await(0, r.add(0, 3)...)
			r.rest()
			y := r.twoMasters(link, replica)
			m.proxy.SetTarget(replica.Addr())
			var rule *faultproxy.Rule
			if action != nil {
				rule = r.onRead(m.proxy, faultproxy.Every, 0).Do(*action)
			}
			m.proxy.CutAll()
			if action != nil {
				r.eventually("the worker is in doubt", func() bool { // or its lease was over before, on a busy machine
					text := m.output.String()
					return strings.Contains(text, "deliveries forgotten") || strings.Contains(text, "partitions lost")
				})
				rule.Release()
			}
			r.await(0, y)
			r.await(0, r.addID(0, "*"))
			r.rest()
		})
	}
}

// twoMasters promotes the replica beside its master. First the new master appends an event y, then the old one x, which is
// processed; from then on the rig looks at the new one. It returns y.
func (r *rig) twoMasters(link *faultproxy.Proxy, replica *redistest.Server) (y string) {
	r.t.Helper()
	replica.WaitSync(r.t, r.srv)
	link.Pause()
	replica.Promote()
	old, promoted := r.rdb, replica.Client(r.t)
	r.srv, r.rdb = replica, promoted
	y = r.addID(0, "*")
	<-time.After(5 * time.Millisecond) // so that the ID of x is larger
	r.rdb = old
	r.await(0, r.addID(0, "*"))
	r.rdb = promoted
	return y
}

// As above, and the new master has appended z behind x, too: nothing of it is taken before y.
func TestAnIDBelowThePositionComesFirst(t *testing.T) {
	t.Parallel()
	r, link, replica := newReplicated(t, 1, calm)
	m := r.start("w1")
	r.ready(m)
	r.await(0, r.add(0, 3)...)
	r.rest()
	y := r.twoMasters(link, replica)
	<-time.After(5 * time.Millisecond)
	z := r.addID(0, "*")
	m.proxy.SetTarget(replica.Addr())
	m.proxy.CutAll()
	r.await(0, z)
	select {
	case <-r.event(0, y):
	default:
		t.Errorf("%s is processed before %s", z, y)
	}
	r.await(0, y)
	r.rest()
}

// A replica that lacks the last events becomes the master. Asynchronous replication loses them; the
// partition continues.
func TestReplicaBehindByEvents(t *testing.T) {
	t.Parallel()
	r, link, replica := newReplicated(t, 1, time.Second)
	m := r.start("w1")
	r.ready(m)
	r.await(0, r.add(0, 3)...)
	r.rest()
	replica.WaitSync(t, r.srv)
	link.Pause()
	r.await(0, r.add(0, 4)...)
	r.fault("", history.Flush) // asynchronous replication: the 4 are gone
	r.promote(m, replica)
	m.proxy.CutAll()
	m.proxy.Resume()
	r.await(0, r.add(0, 3)...)
	r.finish()
}
