package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// failoverLimit bounds a failover and the recovery on a busy machine.
const failoverLimit = 2 * time.Minute

const secret = "secret"

// A severed is a master with one replica, three sentinels, and a replication link that can be
// broken: it stays down while the replica has the wrong password.
type severed struct {
	t       *testing.T
	w       *redistest.Watched
	master  *redistest.Server
	replica *redistest.Server
	ro      *redis.Client // the replica's
}

func newSevered(t *testing.T) *severed {
	w := redistest.StartWatched(t, 1, "--requirepass", secret)
	s := &severed{t: t, w: w, master: w.Servers()[0], replica: w.Servers()[1]}
	s.ro = s.replica.Client(t)
	return s
}

func (s *severed) sever() {
	s.t.Helper()
	ctx := s.t.Context()
	if err := s.ro.ConfigSet(ctx, "masterauth", "wrong").Err(); err != nil {
		s.t.Fatal(err)
	}
	if err := s.master.Client(s.t).Do(ctx, "CLIENT", "KILL", "TYPE", "replica").Err(); err != nil {
		s.t.Fatal(err)
	}
	await(s.t, "the replication to break", failoverLimit, func() bool { return s.link() == "down" })
}

func (s *severed) mend() {
	s.t.Helper()
	if err := s.ro.ConfigSet(s.t.Context(), "masterauth", secret).Err(); err != nil {
		s.t.Fatal(err)
	}
	await(s.t, "the replication", failoverLimit, func() bool { return s.link() == "up" })
	s.replica.WaitSync(s.t, s.master)
}

func (s *severed) link() string {
	return s.ro.InfoMap(s.t.Context(), "replication").Item("Replication", "master_link_status")
}

// failOver kills the master and restarts it as a replica once another one was promoted.
func (s *severed) failOver() {
	s.t.Helper()
	s.master.Kill()
	if got := s.w.WaitFailover(s.master); got != s.replica {
		s.t.Fatalf("%s was promoted", got.Addr())
	}
	if err := s.ro.ConfigSet(s.t.Context(), "masterauth", secret).Err(); err != nil {
		s.t.Fatal(err)
	}
	s.master.Restart()
	s.w.WaitReplica(s.master)
}

func (s *severed) app(name string, d runnel.Durability) *parcelApp {
	return newParcelApp(s.t, s.master.URL(), name, func(o *runnel.Options) {
		o.Redis, o.RedisURL, o.Durability = nil, s.w.URL(), d
		o.Stream.Partitions = 4
		o.Processor.Lease = 5 * time.Second
	})
}

func (s *severed) producer(d runnel.Durability) *parcelApp { return s.app("producer", d) }

// handled runs a worker until everything is processed, and returns the processed parcels.
func (s *severed) handled() []string {
	s.t.Helper()
	a := s.app("worker", runnel.Durability{})
	var mu sync.Mutex
	var got []string
	a.parcels.Process("check", runnel.Each(func(_ context.Context, _ *runnel.Event, p parcel) error {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, fmt.Sprint(p.Key, "/", p.Seq))
		return nil
	}), nil)
	a.run()
	ready(s.t, failoverLimit, a)
	awaitRest(s.t, s.replica, 4, 1)
	a.stop()
	return got
}

// Redis acknowledges before it replicates: records that a replica lacked when it became the master
// are lost, and no client is told.
func TestAFailoverLosesWhatWasNotReplicated(t *testing.T) {
	t.Parallel()
	const before, lost = 3, 10
	s := newSevered(t)
	p := s.producer(runnel.Durability{})
	for n := range before {
		p.send(parcel{Key: "a", Seq: int64(n)})
	}
	s.replica.WaitSync(t, s.master)
	s.sever()
	for n := range lost {
		p.send(parcel{Key: "a", Seq: int64(before + n)}) // no error
	}
	s.failOver()
	got := s.handled()
	t.Logf("of %d acknowledged events %d were lost", before+lost, before+lost-len(got))
	if len(got) != before {
		t.Errorf("processed %q, want the first %d", got, before)
	}
}

// With Durability the same send is an error and may be repeated with the same ID. Whether or not
// the failover lost the record, it is processed once.
func TestWhatIsNotReplicatedIsSentAgain(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"the failover lost it": true, "the failover kept it": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSevered(t)
			out := runnel.Outgoing[parcel]{Record: parcel{Key: "a", Seq: 1}, DedupID: "order-1"}
			s.producer(runnel.Durability{MinReplicas: 1, Timeout: 30 * time.Second}).send() // the metadata
			s.sever()
			p := s.producer(runnel.Durability{MinReplicas: 1, Timeout: 200 * time.Millisecond})
			sent, err := p.parcels.SendEvents(t.Context(), out)
			var se *runnel.SendError
			if !errors.Is(err, runnel.ErrNotReplicated) || !errors.As(err, &se) || !se.Failed[0].Unknown || sent[0].ID == "" {
				t.Fatalf("the send: %+v, %v", sent, err)
			}
			if !lost {
				s.mend()
			}
			s.failOver()
			var again []runnel.Sent
			await(t, "a send that is replicated", failoverLimit, func() bool {
				again, err = p.parcels.SendEvents(t.Context(), out)
				return err == nil
			})
			if kept := again[0].ID == sent[0].ID && again[0].Duplicate; kept == lost {
				t.Errorf("sent as %+v, then as %+v", sent[0], again[0])
			}
			if got := s.handled(); len(got) != 1 || got[0] != "a/1" {
				t.Errorf("processed %q", got)
			}
		})
	}
}

// runHandling runs a worker and returns the numbers of the processed parcels.
func (a *parcelApp) runHandling() <-chan int64 {
	handled := make(chan int64, 10)
	a.parcels.Process("check", runnel.Each(func(_ context.Context, _ *runnel.Event, p parcel) error {
		handled <- p.Seq
		return nil
	}), nil)
	a.run()
	return handled
}

// A partition is taken over when a replica has confirmed it, and not before. The confirmed state
// survives the replica's promotion, and the owner continues.
func TestAPartitionIsTakenOverWhenAReplicaKnows(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	link, way := faultproxy.Start(t, server.Addr()), faultproxy.Start(t, server.Addr())
	replica := server.ReplicaVia(t, link.Addr())
	newProducer(t, server.URL(), 4).send(parcel{Key: "a", Seq: 1})
	replica.WaitSync(t, server)
	link.Pause()
	a := newParcelApp(t, "redis://"+way.Addr(), "worker", func(o *runnel.Options) {
		o.Durability = runnel.Durability{MinReplicas: 1, Timeout: 200 * time.Millisecond}
		o.Processor.Lease = time.Minute // longer than the test
		o.Stream.Partitions = 4
	})
	handled := a.runHandling()
	await(t, "takeovers that are not replicated", failoverLimit, func() bool {
		return strings.Contains(a.log.String(), "cannot be taken over") && strings.Contains(a.log.String(), "0 of 1 replicas")
	})
	if err := a.app.Ready(); err == nil || len(handled) > 0 {
		t.Errorf("Ready says %v, %d events were processed", err, len(handled))
	}
	link.Resume()
	if got := receive(t, "the event", handled); got != 1 {
		t.Errorf("processed %d", got)
	}
	ready(t, failoverLimit, a)
	link.Pause()
	replica.Promote() // with what it had by then
	way.SetTarget(replica.Addr())
	way.CutAll()
	newProducer(t, replica.URL(), 4).send(parcel{Key: "a", Seq: 2})
	for receive(t, "the next event", handled) != 2 { // the ack of the first may be lost
	}
	if strings.Contains(a.log.String(), "partitions lost") {
		t.Errorf("the owner lost its partitions:\n%s", a.log.String())
	}
}

// If replicas confirm after the lease has expired, the takeover is repeated under a valid lease.
func TestALateConfirmationIsNoLease(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	link := faultproxy.Start(t, server.Addr())
	replica := server.ReplicaVia(t, link.Addr())
	newProducer(t, server.URL(), 1).send(parcel{Key: "a", Seq: 1})
	replica.WaitSync(t, server)
	link.Pause()
	a := newParcelApp(t, server.URL(), "worker", func(o *runnel.Options) {
		o.Durability = runnel.Durability{MinReplicas: 1, Timeout: 30 * time.Second}
		o.Processor.Lease = time.Second
		o.Stream.Partitions = 1
	})
	handled := a.runHandling()
	rdb := server.Client(t)
	held := func() bool { return rdb.Exists(t.Context(), "__lock:post.parcels.check.0").Val() == 1 }
	await(t, "the lock", failoverLimit, held)
	await(t, "its expiry", failoverLimit, func() bool { return !held() })
	link.Resume()
	if got := receive(t, "the event", handled); got != 1 {
		t.Errorf("processed %d", got)
	}
	if text := a.log.String(); !strings.Contains(text, "confirmed after its lease expired") || strings.Contains(text, "partitions lost") {
		t.Errorf("the log:\n%s", text)
	}
}
