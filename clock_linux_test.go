// Neither Wait nor a retry is misled by a clock that is set anew.

package runnel_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// starts runs workers of an app whose processor calls fn, and returns the first one's
// stream and rules, and what starts another worker and returns what stops it.
func starts(t *testing.T, s *redistest.Server, fn runnel.ProcessFunc[item], o runnel.ProcessorOptions) (*runnel.Stream[item], *admin.Client, func() (stop func())) {
	t.Helper()
	declare := func() (*runnel.App, *runnel.Stream[item]) {
		app := runnel.New("contract", &runnel.Options{RedisURL: s.URL(), Logger: slog.New(slog.DiscardHandler)})
		stream := runnel.NewStream(app, "items", keyOfItem, &runnel.StreamOptions{Partitions: 1})
		stream.Process("p", fn, &o)
		t.Cleanup(func() { app.Close() })
		return app, stream
	}
	app, stream := declare()
	return stream, admin.New(app), func() func() {
		app, _ := declare()
		ctx, cancel := context.WithCancel(context.Background())
		result := make(chan error, 1)
		go func() { result <- app.Run(ctx) }()
		stop := sync.OnceFunc(func() {
			cancel()
			if err := <-result; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
		t.Cleanup(stop)
		return stop
	}
}

// A real step of the server's clock ends all locks and heartbeats at once, and another worker
// may take over: Wait does not return before the function's context has ended.
func TestWaitOutlastsAStepOfTheServersClock(t *testing.T) {
	for _, takenOver := range []bool{false, true} {
		t.Run(fmt.Sprintf("takenOver=%v", takenOver), func(t *testing.T) {
			server, clock := redistest.StartWithClock(t)
			var begun, ended atomic.Int64
			fn := runnel.Each(func(ctx context.Context, _ *runnel.Event, _ item) error {
				begun.Add(1)
				<-ctx.Done()
				ended.Add(1)
				return context.Cause(ctx)
			})
			stream, rules, start := starts(t, server, fn, runnel.ProcessorOptions{Lease: 5 * time.Second, OnError: runnel.Ignore})
			start()
			if err := stream.Send(t.Context(), item{N: 1}); err != nil {
				t.Fatal(err)
			}
			redistest.Eventually(t, "the function runs", func() bool { return begun.Load() == 1 })
			if err := rules.Pause(t.Context(), admin.AppScope(), nil); err != nil {
				t.Fatal(err)
			}
			rdb := server.Client(t)
			owner := rdb.Get(t.Context(), "__lock:contract.items.p.0").Val()
			clock.Set(time.Hour) // and until the next refresh the worker does not know
			start()
			redistest.Eventually(t, "another one has taken over", func() bool {
				now := rdb.Get(t.Context(), "__lock:contract.items.p.0").Val()
				return !takenOver || now != "" && now != owner
			})
			if err := rules.Wait(t.Context(), admin.AppScope()); err != nil {
				t.Fatal(err)
			}
			if b, e := begun.Load(), ended.Load(); b != e {
				t.Errorf("Wait returned while %d of %d functions ran", b-e, b)
			}
		})
	}
}

// The clock is set back by an hour while an event waits for its next attempt, and its worker
// is replaced: it does not wait for the hour.
func TestARetryDoesNotWaitForARealStepBack(t *testing.T) {
	server, clock := redistest.StartWithClock(t)
	var n notes
	fn := runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
		n.add(fmt.Sprint(i.N, "#", e.Attempt))
		if e.Attempt == 1 {
			return runnel.RetryAfter(errBad, 5*time.Second)
		}
		return nil
	})
	stream, _, start := starts(t, server, fn, runnel.ProcessorOptions{Lease: 5 * time.Second, Retry: &runnel.Retry{Max: 5}})
	stop := start()
	if err := stream.Send(t.Context(), item{N: 1}); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "the first attempt", func() bool { return n.has("1#1") })
	stop()
	clock.Set(-time.Hour)
	start()
	redistest.Eventually(t, "the second attempt", func() bool { return n.has("1#2") })
}
