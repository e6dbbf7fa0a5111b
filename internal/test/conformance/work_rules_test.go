package conformance_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// While everything is paused 10 000 events are sent, a worker joins and another one
// leaves. Nothing runs. Nine resume it at once: each event is processed once, in
// order.
func TestPauseWithTenThousandEvents(t *testing.T) {
	const partitions, before, meanwhile = 16, 400, 10_000
	srv := redistest.Start(t)
	tr := newTracker(history.Memory())
	worker := func(name string) *parcelApp {
		a := newParcelApp(t, srv.URL(), name, nil)
		tr.process(a, "check", nil, nil)
		return a.run()
	}
	producer := newProducer(t, srv.URL(), partitions)
	send := func(from, n int64) {
		var batch []parcel
		for seq := from; seq < from+n; seq++ {
			batch = append(batch, parcel{Key: fmt.Sprint("customer ", seq%97), Seq: seq})
		}
		producer.send(batch...)
	}
	first, second := worker("w1"), worker("w2")
	ready(t, 60*time.Second, first, second)
	rules, scope := admin.New(producer.app), admin.ProcessorScope("parcels", "check")
	send(0, before)
	if err := rules.Pause(t.Context(), scope, nil); err != nil {
		t.Fatal(err)
	}
	if err := rules.Wait(t.Context(), scope); err != nil {
		t.Fatal(err)
	}
	done := tr.completed()
	send(before, meanwhile)
	third := worker("w3")
	ready(t, 60*time.Second, second, third)
	if err := first.stop(); err != nil {
		t.Error(err)
	}
	ready(t, 60*time.Second, second, third)
	if n := tr.completed(); n != done {
		t.Errorf("%d events were processed during the pause", n-done)
	}
	var wg sync.WaitGroup
	for range 9 {
		wg.Go(func() {
			if err := rules.Resume(t.Context(), scope); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	await(t, "all events", 60*time.Second, func() bool { return tr.completed() == before+meanwhile })
	awaitRest(t, srv, partitions, 1)
	for _, a := range []*parcelApp{second, third} {
		if err := a.stop(); err != nil {
			t.Error(err)
		}
	}
	if n := tr.completed(); n != before+meanwhile {
		t.Errorf("%d events were processed twice", n-before-meanwhile)
	}
	tr.judge(t, srv, partitions, history.Options{Processors: []string{"check"}})
}

// A worker that cannot read the rules any more does as it knew, one that never could
// starts nothing.
func TestRulesHoldWhileTheyCannotBeRead(t *testing.T) {
	const partitions = 4
	srv := redistest.Start(t)
	tr := newTracker(history.Memory())
	via := func(name string, proxy *faultproxy.Proxy) *parcelApp {
		a := newParcelApp(t, "redis://"+proxy.Addr(), name, func(o *runnel.Options) { o.Stream.Partitions = partitions })
		tr.process(a, "check", nil, nil)
		return a.run()
	}
	unread := func(proxy *faultproxy.Proxy) *faultproxy.Rule {
		return proxy.On("HGETALL", faultproxy.Every).Containing("__rules:post").Do(faultproxy.Hold)
	}
	producer := newProducer(t, srv.URL(), partitions)
	rules := admin.New(producer.app)
	do := func(fn func(context.Context, admin.Scope) error) {
		t.Helper()
		if err := fn(t.Context(), admin.AppScope()); err != nil {
			t.Fatal(err)
		}
	}
	pause := func(ctx context.Context, s admin.Scope) error { return rules.Pause(ctx, s, nil) }
	proxy := faultproxy.Start(t, srv.Addr())
	a := via("w1", proxy)
	ready(t, 30*time.Second, a)
	producer.send(parcel{Key: "a", Seq: 0})
	await(t, "the first event", 30*time.Second, func() bool { return tr.completed() == 1 })

	do(pause)
	do(rules.Wait)
	held := unread(proxy)
	do(rules.Resume)
	held.Wait(t) // it has heard of the change
	producer.send(parcel{Key: "a", Seq: 1})
	<-time.After(5 * time.Second)
	if n := tr.completed(); n != 1 {
		t.Errorf("%d events processed, though the last known rule is a pause", n)
	}
	held.Release()
	await(t, "the second event", 30*time.Second, func() bool { return tr.completed() == 2 })
	if err := a.stop(); err != nil {
		t.Error(err)
	}

	proxy = faultproxy.Start(t, srv.Addr())
	held = unread(proxy)
	b := via("w2", proxy)
	ready(t, 30*time.Second, b)
	producer.send(parcel{Key: "a", Seq: 2})
	<-time.After(5 * time.Second)
	if n := tr.completed(); n != 2 {
		t.Errorf("%d events processed by a worker that has never read the rules", n-2)
	}
	held.Release()
	await(t, "the third event", 30*time.Second, func() bool { return tr.completed() == 3 })
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	tr.judge(t, srv, partitions, history.Options{Processors: []string{"check"}})
}

// A rule takes hold on all workers within a second, and is lifted as soon.
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
		if err := a.stop(); err != nil {
			t.Error(err)
		}
	}
	tr.judge(t, srv, partitions, history.Options{Processors: []string{"check"}})
}

// With the rights of a worker, as docs/security.md has them, workers work, and only an
// operator changes rules.
func TestRightsOfTheDocs(t *testing.T) {
	srv := redistest.Start(t)
	c, err := store.Open(redisconn.Options{URL: srv.URL(), Keys: keys.Keys{App: "post", Layout: keys.Standalone}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for user, role := range map[string]store.Role{"shop": store.Work, "admin": store.Operate} {
		args := []any{"ACL", "SETUSER", user, "reset", "on", ">secret"}
		for _, rule := range c.Rule(role) {
			args = append(args, rule)
		}
		if err := srv.Client(t).Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	as := func(user string) string { return "redis://" + user + ":secret@" + srv.Addr() }
	tr := newTracker(history.Memory())
	a := newParcelApp(t, as("shop"), "w1", func(o *runnel.Options) { o.Stream.Partitions = 4 })
	tr.process(a, "check", &runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 2}}, nil)
	ticks := make(chan struct{}, 100)
	a.app.Every("tick", 50*time.Millisecond, func(context.Context) error { ticks <- struct{}{}; return nil }, &runnel.TaskOptions{Leader: true, Durable: true})
	a.run()
	ready(t, 30*time.Second, a)
	a.send(parcel{Key: "a", Seq: 0})
	await(t, "an event", 30*time.Second, func() bool { return tr.completed() == 1 })
	receive(t, "a durable task", ticks)

	scope := admin.AppScope()
	for what, err := range map[string]error{
		"pause":   admin.New(a.app).Pause(t.Context(), scope, nil),
		"unblock": admin.New(a.app).Unblock(t.Context(), scope),
	} {
		names(t, err, "NOPERM")
		if err == nil {
			t.Errorf("whoever may run a worker may %s", what)
		}
	}
	root := newParcelApp(t, as("admin"), "admin", nil)
	for _, err := range []error{
		admin.New(root.app).Block(t.Context(), scope, nil), admin.New(a.app).Wait(t.Context(), scope), admin.New(root.app).Unblock(t.Context(), scope),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	a.send(parcel{Key: "a", Seq: 1})
	await(t, "another event", 30*time.Second, func() bool { return tr.completed() == 2 })
	if err := a.stop(); err != nil {
		t.Error(err)
	}
}
