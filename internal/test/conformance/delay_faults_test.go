package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// dueKey is part of every request about the delayed parcels of partition 0.
const dueKey = "\r\n__dueseq:post.parcels.0\r\n"

// breaks are the ways in which a request or its reply may fail.
var breaks = []struct {
	name     string
	executed bool
	action   faultproxy.Action
}{
	{"close before", false, faultproxy.CloseBefore},
	{"close after", true, faultproxy.CloseAfter},
	{"reset", true, faultproxy.Reset},
	{"swallow", true, faultproxy.Swallow},
}

// onePartition sets options for parcels in a single partition, and a lease that outlasts a lost
// reply.
func onePartition(o *runnel.Options) {
	o.Stream.Partitions = 1
	o.Processor.Lease = 20 * time.Second
}

// A worker whose n-th move breaks in one of four ways still moves every event once, in order, and
// none early.
func TestBrokenMoves(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	for n := 1; n <= 3; n++ {
		for _, h := range breaks {
			t.Run(fmt.Sprintf("%d %s", n, h.name), func(t *testing.T) {
				// A late worker moves in fewer requests.
				lead := 100 * time.Millisecond
				for !brokenMove(t, srv, n, h.action, lead) {
					if lead *= 4; lead > 10*time.Second { // the rest is due after three times that
						t.Fatalf("there is no request %d", n)
					}
				}
			})
		}
	}
}

// brokenMove breaks the n-th move of parcels that are due after lead, and reports whether there was
// one.
func brokenMove(t *testing.T, srv *redistest.Server, n int, action faultproxy.Action, lead time.Duration) (broken bool) {
	srv.Client(t).FlushAll(t.Context())
	producer := newProducer(t, srv.URL(), 1)
	w := newWatcher(t)
	proxy := faultproxy.Start(t, srv.Addr())
	a := newParcelApp(t, "redis://"+proxy.Addr(), "w1", onePartition)
	w.process(a, "check", nil, nil)
	soon := time.Now().Add(lead)
	producer.sendAt(soon.Add(2*lead), "k", 41, 42, 43, 44, 45)
	producer.sendAt(soon, "k", 1, 2, 3, 4, 5)
	rule := proxy.On("EVALSHA", n).Containing(dueKey).Do(action)
	a.run()
	fired := func() bool {
		select {
		case <-rule.Fired():
			return true
		default:
			return false
		}
	}
	await(t, "the broken move, or all parcels", 60*time.Second, func() bool { return fired() || w.count("check") == 10 })
	broken = fired()
	producer.sendAt(time.Now().Add(100*time.Millisecond), "k", 91, 92, 93)
	await(t, "all parcels", 60*time.Second, func() bool { return w.count("check") == 13 })
	a.stop()
	w.once("check", 1, 2, 3, 4, 5, 41, 42, 43, 44, 45, 91, 92, 93)
	if n := srv.Client(t).XLen(t.Context(), partitionKey(0)).Val(); n != 13 || waiting(t, srv, 0) != 0 {
		t.Errorf("%d entries, and %d wait", n, waiting(t, srv, 0))
	}
	return broken
}

// plainApp is an app whose go-redis dials through a proxy.
func plainApp(t *testing.T, proxy *faultproxy.Proxy) *parcelApp {
	return newParcelApp(t, "redis://"+proxy.Addr(), "producer", onePartition)
}

// A broken send of delayed parcels is appended as a whole or not at all, and returns an unknown
// outcome. Sent again under the same IDs, the parcels are there once.
func TestBrokenDelays(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	for _, h := range breaks {
		t.Run(h.name, func(t *testing.T) {
			srv.Client(t).FlushAll(t.Context())
			proxy := faultproxy.Start(t, srv.Addr())
			a := plainApp(t, proxy)
			at := time.Now().Add(time.Hour)
			a.sendAt(at, "k", 1)
			rule := proxy.On("EVALSHA", 1).Containing(dueKey).Do(h.action)
			out := []runnel.Outgoing[parcel]{{Record: parcel{Key: "k", Seq: 2}, At: at, DedupID: "2"}, {Record: parcel{Key: "k", Seq: 3}, At: at, DedupID: "3"}}
			_, err := a.parcels.SendEvents(t.Context(), out...)
			rule.Wait(t)
			var failed *runnel.SendError
			if !errors.As(err, &failed) || len(failed.Failed) != 2 || !failed.Failed[0].Unknown || !failed.Failed[1].Unknown {
				t.Errorf("got %v", err)
			}
			want := int64(1)
			if h.executed {
				want = 3
			}
			await(t, "what was sent", 30*time.Second, func() bool { return waiting(t, srv, 0) == want })
			for range 2 {
				sent, err := a.parcels.SendEvents(t.Context(), out...)
				if err != nil || sent[0].Duplicate != h.executed || waiting(t, srv, 0) != 3 {
					t.Errorf("again: %+v, %v, and %d wait", sent, err, waiting(t, srv, 0))
				}
				h.executed = true
			}
		})
	}
}

// After a broken Cancel the parcel is cancelled or not, and the next Cancel reports which.
func TestBrokenCancels(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	for _, h := range breaks {
		t.Run(h.name, func(t *testing.T) {
			srv.Client(t).FlushAll(t.Context())
			proxy := faultproxy.Start(t, srv.Addr())
			a := plainApp(t, proxy)
			sent := a.sendAt(time.Now().Add(time.Hour), "k", 1, 2)
			if ok, err := a.parcels.Cancel(t.Context(), sent[0].ID); !ok || err != nil {
				t.Fatalf("the first: %v, %v", ok, err)
			}
			rule := proxy.On("EVALSHA", 1).Containing(dueKey).Do(h.action)
			if ok, err := a.parcels.Cancel(t.Context(), sent[1].ID); ok || err == nil || !containsAll(err.Error(), "stream parcels", "partition 0", sent[1].ID) {
				t.Errorf("the broken one: %v, %v", ok, err)
			}
			rule.Wait(t)
			if h.executed { // perhaps only soon: a reset does not wait for it
				await(t, "the broken one", 30*time.Second, func() bool { return waiting(t, srv, 0) == 0 })
			}
			if ok, err := a.parcels.Cancel(t.Context(), sent[1].ID); err != nil || ok == h.executed {
				t.Errorf("again: %v, %v", ok, err)
			}
			if n := waiting(t, srv, 0); n != 0 {
				t.Errorf("%d wait", n)
			}
		})
	}
}

// A parcel that is cancelled when it is due is either cancelled or processed.
func TestCancelAtTheDueTime(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	const n = 400
	producer := newProducer(t, srv.URL(), 1)
	w := newWatcher(t)
	a := newParcelApp(t, srv.URL(), "w1", onePartition)
	w.process(a, "check", nil, nil)
	a.run()
	ready(t, 60*time.Second, a)
	at := time.Now().Add(200 * time.Millisecond)
	var sent []runnel.Sent
	for i := range int64(n / 4) { // of different times
		sent = append(sent, producer.sendAt(at.Add(time.Duration(i)*time.Millisecond), "k", 4*i+1, 4*i+2, 4*i+3, 4*i+4)...)
	}
	await(t, "the first of them", 60*time.Second, func() bool { return w.count("check") > 0 })
	var processed []int64
	for i := range sent {
		at := n - 1 - i // from the last on, towards the forwarder
		ok, err := producer.parcels.Cancel(t.Context(), sent[at].ID)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			processed = append(processed, int64(at+1))
		}
	}
	t.Logf("%d of %d were cancelled", n-len(processed), n)
	await(t, "the others", 60*time.Second, func() bool { return w.count("check") == len(processed) })
	a.stop()
	w.once("check", processed...)
}

// A worker that missed the message about an earlier parcel finds it with its next refresh.
func TestLostHintOfADelay(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	proxy := faultproxy.Start(t, srv.Addr())
	w := newWatcher(t)
	a := newParcelApp(t, srv.URL(), "w1", func(o *runnel.Options) {
		o.Stream.Partitions, o.Processor.Lease = 1, 3*time.Second
	})
	w.process(a, "check", nil, nil)
	a.run()
	ready(t, 60*time.Second, a)
	producer := plainApp(t, proxy)
	rule := proxy.On("XADD", faultproxy.Every).Containing("__ctrl:post.parcels.check").Do(faultproxy.CloseBefore)
	producer.sendAt(time.Now().Add(time.Hour), "k", 1)
	producer.sendAt(time.Now().Add(50*time.Millisecond), "k", 2)
	rule.Wait(t)
	await(t, "the parcel", patience(t), func() bool { return w.count("check") == 1 })
	a.stop()
	w.once("check", 2)
}

// Forwarders of several workers, for two processors of the stream, move each parcel once.
func TestManyMovers(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	const n, partitions = 1000, 4
	keys := keysOf(partitions)
	w := newWatcher(t)
	var workers []*parcelApp
	for i := range 3 {
		a := newParcelApp(t, srv.URL(), fmt.Sprint("w", i), func(o *runnel.Options) {
			o.Stream.Partitions, o.Processor.Lease = partitions, 5*time.Second
		})
		w.process(a, "check", nil, nil)
		w.process(a, "count", nil, nil)
		workers = append(workers, a.run())
	}
	ready(t, 60*time.Second, workers...)
	producer := newProducer(t, srv.URL(), partitions)
	at := time.Now().Add(300 * time.Millisecond)
	for i := int64(0); i < n; i += 10 {
		producer.sendAt(at.Add(time.Duration(i/100)*20*time.Millisecond), keys[i/10%partitions],
			i+1, i+2, i+3, i+4, i+5, i+6, i+7, i+8, i+9, i+10)
	}
	await(t, "all parcels", 90*time.Second, func() bool { return w.count("check") == n && w.count("count") == n })
	for _, a := range workers {
		a.stop()
	}
	w.once("check", seqs(n)...)
	w.once("count", seqs(n)...)
}

// While the partition is full, due events wait: none is refused or lost, and the length is kept.
func TestDueWhileFull(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	const size, n = 20, 200
	w := newWatcher(t)
	open := make(chan struct{})
	a := newParcelApp(t, srv.URL(), "w1", func(o *runnel.Options) {
		onePartition(o)
		o.Stream.MaxLen = size
	})
	w.process(a, "check", nil, func(ctx context.Context, _ parcel) error {
		select {
		case <-open:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	a.run()
	ready(t, 60*time.Second, a)
	for _, seq := range seqs(n) {
		a.sendAt(time.Now().Add(50*time.Millisecond), "k", seq)
	}
	rdb := srv.Client(t)
	length := func() int64 { return rdb.XLen(t.Context(), partitionKey(0)).Val() }
	await(t, "a full partition", 60*time.Second, func() bool { return length() == size })
	// Time for several tries to move more.
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		if l := length(); l != size || waiting(t, srv, 0) != n-size {
			t.Fatalf("length %d, and %d wait", l, waiting(t, srv, 0))
		}
	}
	if !containsAny(a.log.String(), "delayed events wait for room") {
		t.Error("the log does not say that they wait")
	}
	close(open)
	await(t, "all parcels", 60*time.Second, func() bool {
		if l := length(); l > size {
			t.Fatalf("length %d", l)
		}
		return w.count("check") == n
	})
	a.stop()
	w.once("check", seqs(n)...)
}
