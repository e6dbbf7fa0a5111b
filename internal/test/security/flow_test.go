package security

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A flow is an app that sends orders, and its worker.
type flow struct {
	t      *testing.T
	app    *runnel.App
	looker *runnel.App // says what is acked
	orders *runnel.Stream[order]
	log    redistest.Log

	mu  sync.Mutex
	did map[string][]int // by key, each as it was begun first
}

const flowPartitions = 4

func begin(t *testing.T, name string, o *runnel.Options) *flow {
	t.Helper()
	f := &flow{t: t, did: map[string][]int{}}
	o.Logger = slog.New(slog.NewTextHandler(&f.log, nil))
	o.Stream.Partitions = flowPartitions
	f.app = runnel.New(name, o)
	f.looker = f.app
	f.orders = runnel.NewStream(f.app, "orders", func(o order) string { return o.Key }, nil)
	f.orders.Process("printer", runnel.Each(func(_ context.Context, _ *runnel.Event, o order) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if !slices.Contains(f.did[o.Key], o.Seq) {
			f.did[o.Key] = append(f.did[o.Key], o.Seq)
		}
		return nil
	}), nil)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.app.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the worker ends: %v", err)
		}
		f.app.Close()
		if t.Failed() {
			t.Logf("the worker's log: %s", f.log.String())
		}
	})
	return f
}

// send sends orders of some keys, and repeats each until a server accepts it.
func (f *flow) send(from, to int) error {
	_, all := keysOf(from, to)
	for _, o := range all {
		var err error
		if !redistest.Within(redistest.Patience, func() bool { err = f.orders.Send(f.t.Context(), o); return err == nil }) {
			return err
		}
	}
	return nil
}

// sent sends orders and waits until that many of each key were processed, in order, and acked.
func (f *flow) sent(from, to int) {
	f.t.Helper()
	if err := f.send(from, to); err != nil {
		f.t.Fatal(err)
	}
	f.await(to)
}

// await waits until that many orders of each key were processed, in order, and acked.
func (f *flow) await(n int) {
	f.t.Helper()
	keys, _ := keysOf(0, 0)
	want := make([]int, n)
	for i := range want {
		want[i] = i
	}
	done := func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return !slices.ContainsFunc(keys, func(key string) bool { return len(f.did[key]) < n })
	}
	if !redistest.Within(redistest.Patience, done) {
		f.t.Fatalf("not all of %d orders were processed: %v", n, f.did)
	}
	for _, key := range keys {
		if !slices.Equal(f.did[key], want) {
			f.t.Errorf("%s: began %v", key, f.did[key])
		}
	}
	said := ""
	if !redistest.Within(redistest.Patience, func() bool {
		_, said, _ = mainOf(f.t.Context(), f.looker, "check")
		return strings.Contains(said, "lag 0, oldest unacked event -")
	}) {
		f.t.Errorf("not everything is acked: %s", said)
	}
}
