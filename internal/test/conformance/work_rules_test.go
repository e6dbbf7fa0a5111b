package conformance_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A worker that has never read the rules begins nothing.
func TestRulesHoldWhileTheyCannotBeRead(t *testing.T) {
	const partitions = 4
	srv := redistest.Start(t)
	tr := newTracker(history.Memory())
	proxy := faultproxy.Start(t, srv.Addr())
	held := proxy.On("HGETALL", faultproxy.Every).Containing("__rules:post").Do(faultproxy.Hold)
	a := newParcelApp(t, "redis://"+proxy.Addr(), "w1", func(o *runnel.Options) { o.Stream.Partitions = partitions })
	tr.process(a, "check", nil, nil)
	newProducer(t, srv.URL(), partitions).send(parcel{Key: "a", Seq: 1})
	a.run()
	ready(t, 30*time.Second, a)
	<-time.After(2 * time.Second)
	if n := tr.completed(); n != 0 {
		t.Errorf("%d events processed by a worker that has never read the rules", n)
	}
	held.Release()
	await(t, "the event", 30*time.Second, func() bool { return tr.completed() == 1 })
	a.stop()
	tr.judge(t, srv, partitions, history.Options{Processors: []string{"check"}})
}

// A rule takes effect on all workers within a second, and so does its removal.
func TestRulesTakeHoldWithinASecond(t *testing.T) {
	const partitions = 8
	srv := redistest.Start(t)
	var mu sync.Mutex
	var last time.Time // when an iteration began last
	tr := newTracker(history.Memory())
	var workers []*parcelApp
	for n := range 3 {
		a := newParcelApp(t, srv.URL(), fmt.Sprint("w", n), func(o *runnel.Options) { o.Stream.Partitions = partitions })
		tr.process(a, "check", nil, func(context.Context, *runnel.Event, parcel) error {
			mu.Lock()
			defer mu.Unlock()
			last = time.Now()
			return nil
		})
		workers = append(workers, a.run())
	}
	ready(t, 60*time.Second, workers...)
	producer := newProducer(t, srv.URL(), partitions)
	flow := startFlow(t, producer, tr.history, partitions, 10*time.Millisecond)
	began := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return last
	}
	await(t, "events", 30*time.Second, func() bool { return !began().IsZero() })
	rules := admin.New(producer.app)
	if err := rules.Block(t.Context(), admin.StreamScope("parcels"), nil); err != nil {
		t.Fatal(err)
	}
	set := time.Now()
	<-time.After(5 * time.Second)
	after := began().Sub(set)  // negative, if none did
	if after > 3*time.Second { // promised is one; a heartbeat would bring it after more than three
		t.Errorf("an iteration began %v after the block", after)
	}
	if err := rules.Unblock(t.Context(), admin.StreamScope("parcels")); err != nil {
		t.Fatal(err)
	}
	lifted := time.Now()
	await(t, "events", 30*time.Second, func() bool { return began().After(lifted) })
	t.Logf("the last iteration began %v after the block, the next one %v after its end", after, time.Since(lifted))
	flow.stop()
	awaitRest(t, srv, partitions, 1)
	for _, a := range workers {
		a.stop()
	}
	tr.judge(t, srv, partitions, history.Options{Processors: []string{"check"}})
}
