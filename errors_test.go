// A function that returns without consuming its events, panics, or ends its goroutine fails with
// an error that says so, and the worker halts; a goroutine of middleware ends alone.

package runnel_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

func TestNotConsumedAlwaysHalts(t *testing.T) {
	for _, policy := range []runnel.Policy{runnel.Halt, runnel.Quarantine, runnel.Ignore} {
		s := declareItems(func(context.Context, *runnel.Events[item]) error { return nil }, &runnel.ProcessorOptions{OnError: policy})
		got := runneltest.Process(t, s, "p", items(1)...)
		wantAcked(t, got)
		wantErr(t, got.Err, runnel.ErrNotConsumed)
		for _, part := range []string{"stream items", "partition 0", "processor p"} {
			if got.Err == nil || !strings.Contains(got.Err.Error(), part) {
				t.Errorf("%v: %v does not name %s", policy, got.Err, part)
			}
		}
	}
}

// A function that returns without ranging when it is called again, for the same
// batch, is no less wrong.
func TestNotConsumedInARetryAlwaysHalts(t *testing.T) {
	again := func(next runnel.Handler) runnel.Handler {
		return func(ctx context.Context, b *runnel.Batch) error {
			if err := next(ctx, b); err != nil {
				return next(ctx, b)
			}
			return nil
		}
	}
	for _, policy := range []runnel.Policy{runnel.Halt, runnel.Quarantine, runnel.Ignore} {
		calls := 0
		s := declareItems(func(_ context.Context, ev *runnel.Events[item]) error {
			if calls++; calls > 1 {
				return nil
			}
			for range ev.Records() {
				return errBad
			}
			return nil
		}, &runnel.ProcessorOptions{OnError: policy, Middleware: []runnel.Middleware{again}})
		got := runneltest.Process(t, s, "p", items(1)...)
		wantAcked(t, got)
		wantErr(t, got.Err, runnel.ErrNotConsumed)
	}
}

func TestAPanicIsAnErrorWithItsStack(t *testing.T) {
	for name, value := range map[string]any{"text": "oh no", "error": errBad} {
		s := declareItems(func(_ context.Context, ev *runnel.Events[item]) error {
			for range ev.Records() {
				explode(value)
			}
			return nil
		}, nil)
		got := runneltest.Process(t, s, "p", items(1)...)
		wantAcked(t, got)
		var p *runnel.PanicError
		if !errors.As(got.Err, &p) || p.Value != value {
			t.Fatalf("%s: %v", name, got.Err)
		}
		if !strings.Contains(string(p.Stack), "explode") || !strings.Contains(got.Err.Error(), "explode") {
			t.Errorf("%s: the stack does not show where:\n%s", name, p.Stack)
		}
		if errors.Is(got.Err, errBad) != (value == errBad) {
			t.Errorf("%s: chain of %v", name, got.Err)
		}
	}
}

//go:noinline
func explode(value any) { panic(value) }

// Where middleware calls the function in a goroutine of its own, that alone ends: the event has failed.
func TestGoexitInAGoroutineOfMiddlewareIsAFailure(t *testing.T) {
	var n notes
	fn := runnel.Each(func(ctx context.Context, e *runnel.Event, i item) error {
		n.add(attempt(ctx, e, i))
		if i.N == 2 {
			runtime.Goexit()
		}
		return nil
	})
	apart := func(next runnel.Handler) runnel.Handler {
		return func(ctx context.Context, b *runnel.Batch) (err error) {
			var done sync.WaitGroup
			done.Go(func() { err = next(ctx, b) })
			done.Wait()
			return err
		}
	}
	opts := &runnel.ProcessorOptions{Middleware: []runnel.Middleware{apart}, Retry: &runnel.Retry{Max: 2}}
	cluster(t, 1, fn, opts, func(c *runneltest.Cluster, send func(...int)) {
		w := ready(c, "a")
		send(1, 2, 3)
		c.Sleep(time.Minute)
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
		if got := strings.Join(n.all(), ", "); got != "a 1#1, a 2#1, a 2#2, a 3#1" {
			t.Error(got)
		}
		if dead := deadLetters(t, c, 0); len(dead) != 1 || dead[0] != "2#2 failed" {
			t.Errorf("dead letters: %q", dead)
		}
	})
}

func TestGoexitInAFunctionHaltsTheWorker(t *testing.T) {
	fn := runnel.Each(func(_ context.Context, _ *runnel.Event, i item) error {
		if i.N == 2 {
			runtime.Goexit()
		}
		return nil
	})
	for name, opts := range map[string]*runnel.ProcessorOptions{
		"plain":      nil,
		"middleware": middlewares(retry(2)),
		"ignore":     {OnError: runnel.Ignore},
	} {
		t.Run(name, func(t *testing.T) {
			cluster(t, 1, fn, opts, func(c *runneltest.Cluster, send func(...int)) {
				w := ready(c, "a")
				send(1, 2, 3)
				c.Sleep(time.Minute)
				select {
				case <-w.Done():
				default:
					t.Error("the worker goes on")
				}
				err := w.Stop()
				for _, part := range []string{"stream items", "partition 0", "processor p", "runtime.Goexit"} {
					if err == nil || !strings.Contains(err.Error(), part) {
						t.Errorf("Run: %v, want %s named", err, part)
					}
				}
				if n := len(undone(c, "__strm:contract.items.0")); n != 2 {
					t.Errorf("%d events are left to do, want that which was being processed and the next one", n)
				}
			})
		})
	}
}
