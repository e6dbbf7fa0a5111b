package conformance_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// One worker processes the events of very many partitions.
func TestManyPartitions(t *testing.T) {
	t.Parallel()
	const partitions = 1024
	srv := redistest.Start(t)
	tr := newTracker(history.Memory())
	a := newParcelApp(t, srv.URL(), "w1", func(o *runnel.Options) { o.Stream.Partitions = partitions })
	tr.process(a, "check", nil, nil)
	var batch []parcel
	for n := range int64(5000) {
		batch = append(batch, parcel{Key: fmt.Sprint("customer ", n%997), Seq: n})
	}
	a.send(batch...)
	began := time.Now()
	a.run()
	await(t, "all events", 60*time.Second, func() bool { return tr.completed() == len(batch) })
	t.Logf("%d events of %d partitions processed within %v of the start", len(batch), partitions, time.Since(began).Round(time.Millisecond))
	a.stop()
	awaitRest(t, srv, partitions, 1)
	tr.judge(t, srv, partitions, history.Options{Processors: []string{"check"}})
}

const megabyte = 1 << 20

// An empty key is a key: its events are in one partition, in order. Events of 5 MB are among small
// ones.
func TestEmptyKeysAndLargePayloads(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	tr := newTracker(history.Memory())
	a := newParcelApp(t, srv.URL(), "w1", nil)
	pads := []string{"", strings.Repeat("x", 5*megabyte), "é", strings.Repeat("ab", 5*megabyte/2)}
	tr.process(a, "check", nil, func(_ context.Context, e *runnel.Event, p parcel) error {
		if p.Pad != pads[p.Seq%4] || p.Key != "" || e.Key() != "" {
			t.Errorf("event %s has key %q and a pad of %d bytes", e.ID, p.Key, len(p.Pad))
		}
		return nil
	})
	var batch []parcel
	for n := range int64(12) {
		batch = append(batch, parcel{Seq: n, Pad: pads[n%4]})
	}
	a.send(batch...)
	a.run()
	await(t, "all events", 60*time.Second, func() bool { return tr.completed() == len(batch) })
	awaitRest(t, srv, 16, 1)
	a.stop()
	if n := len(tr.owners("check")); n != 1 {
		t.Errorf("an empty key was met in %d partitions", n)
	}
	tr.judge(t, srv, 16, history.Options{Processors: []string{"check"}})
}

// An app spread over programs: one sends, and two run different processors. Every processor gets
// every event, and the stream's metadata lists them all.
func TestAppOfSeveralPrograms(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	tr := newTracker(history.Memory())
	first := newParcelApp(t, srv.URL(), "first", nil)
	tr.process(first, "pack", nil, nil)
	second := newParcelApp(t, srv.URL(), "second", nil)
	for _, name := range []string{"bill", "ship"} {
		tr.process(second, name, nil, nil)
	}
	flow := startFlow(t, newProducer(t, srv.URL(), 16), tr.history, 16, time.Millisecond)
	await(t, "a head start", 30*time.Second, func() bool { return flow.round.Load() >= 50 })
	first.run()
	second.run()
	await(t, "more", 60*time.Second, func() bool { return flow.round.Load() >= 150 })
	flow.stop()
	for _, name := range []string{"pack", "bill", "ship"} {
		await(t, name, 60*time.Second, func() bool { return tr.passed(name, 16, flow.round.Load()) })
	}
	awaitRest(t, srv, 16, 3)
	for _, a := range []*parcelApp{first, second} {
		a.stop()
	}
	tr.judge(t, srv, 16, history.Options{Processors: []string{"pack", "bill", "ship"}})
	if meta := loadMeta(t, srv); !slices.Equal(meta.Processors, []string{"bill", "pack", "ship"}) {
		t.Errorf("the metadata knows the processors %q", meta.Processors)
	}
}

func loadMeta(t *testing.T, srv *redistest.Server) store.Meta {
	t.Helper()
	client, err := store.Open(redisconn.Options{URL: srv.URL(), Keys: postKeys})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	meta, ok, err := client.LoadMeta(t.Context(), "parcels")
	if err != nil || !ok {
		t.Fatalf("metadata: %v, %v", ok, err)
	}
	return meta
}
