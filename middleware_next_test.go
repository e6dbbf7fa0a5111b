// Whenever middleware calls next, iterations never overlap, and none gets events of another.

package runnel_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/runneltest"
)

// notingCodec notes when the consumer makes the next batch.
type notingCodec struct {
	codec.Codec
	n *notes
}

func (c notingCodec) Decode(data []byte, record any) error {
	c.n.add("d")
	return c.Codec.Decode(data, record)
}

// The middleware leaves iteration 2 while the function is in it; the function
// comes back from it later, by when nothing else may have begun.
func TestIterationsNeverOverlapThoughMiddlewareAbandonsNext(t *testing.T) {
	for _, policy := range []runnel.Policy{runnel.Ignore, runnel.Halt, runnel.Quarantine} {
		t.Run(policy.String(), func(t *testing.T) {
			var n notes
			begun, release := make(chan struct{}), make(chan struct{})
			abandon := func(next runnel.Handler) runnel.Handler {
				return func(ctx context.Context, b *runnel.Batch) error {
					done := make(chan error, 1)
					go func() { done <- next(ctx, b) }()
					select {
					case err := <-done:
						return err
					case <-begun:
						time.AfterFunc(50*time.Millisecond, func() { close(release) })
						return errBad
					}
				}
			}
			app := runnel.New("contract", nil)
			s := runnel.NewStream(app, "items", keyOfItem, &runnel.StreamOptions{Codec: notingCodec{codec.JSON, &n}})
			s.Process("p", func(_ context.Context, ev *runnel.Events[item]) error {
				defer n.add("deferred")
				for i := range ev.Records() {
					n.add(fmt.Sprint("+", i.N))
					if i.N == 2 {
						begun <- struct{}{}
						<-release
					}
					n.add(fmt.Sprint("-", i.N))
				}
				return nil
			}, &runnel.ProcessorOptions{OnError: policy, Middleware: []runnel.Middleware{abandon}})
			r := runneltest.Process(t, s, "p", items(1, 2, 3, 4)...)
			want := "d +1 -1 d +2 -2 deferred"
			if policy == runnel.Ignore {
				want = "d +1 -1 d +2 -2 d +3 -3 d +4 -4 deferred"
				wantAcked(t, r, "1-0", "2-0", "3-0", "4-0")
			} else {
				wantAcked(t, r, "1-0") // the others come again
			}
			if got := strings.Join(n.all(), " "); got != want {
				t.Errorf("ran %s, want %s", got, want)
			}
		})
	}
}

// A next that is called when the middleware has returned finds its events acked:
// it must not let them, or others, through.
func TestNextIsRefusedAfterTheMiddlewaresReturn(t *testing.T) {
	type call struct {
		next  runnel.Handler
		ctx   context.Context
		batch *runnel.Batch
	}
	for _, tt := range []struct {
		name string
		last func(b *runnel.Batch) // what is done to the old batch
	}{
		{"as it was", func(*runnel.Batch) {}},
		{"without events", func(b *runnel.Batch) { b.Events = nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var kept *call
			var late []error
			var seen []int
			try := func() {
				if kept != nil {
					tt.last(kept.batch)
					late = append(late, kept.next(kept.ctx, kept.batch))
				}
			}
			s := declareItems(runnel.Each(func(_ context.Context, _ *runnel.Event, i item) error {
				seen = append(seen, i.N)
				return nil
			}), middlewares(func(next runnel.Handler) runnel.Handler {
				return func(ctx context.Context, b *runnel.Batch) error {
					if b.Events[0].ID == "1-0" {
						kept = &call{next, ctx, b}
						return nil // acked
					}
					return next(ctx, b)
				}
			}))
			wantAcked(t, runneltest.Process(t, s, "p", items(1, 2, 3)...), "1-0", "2-0", "3-0")
			try()
			if len(late) != 1 || late[0] == nil {
				t.Errorf("next answered %v", late)
			}
			if fmt.Sprint(seen) != "[2 3]" {
				t.Errorf("saw %v", seen)
			}
		})
	}
}

// During a later iteration the events of an earlier one are not let through either.
func TestNextIsRefusedWithTheEventsOfAnotherIteration(t *testing.T) {
	var seen []int
	var refused error
	var first *runnel.Batch
	s := declareItems(runnel.Each(func(_ context.Context, _ *runnel.Event, i item) error {
		seen = append(seen, i.N)
		return nil
	}), middlewares(func(next runnel.Handler) runnel.Handler {
		return func(ctx context.Context, b *runnel.Batch) error {
			switch b.Events[0].ID {
			case "1-0":
				first = b
				return nil
			case "2-0":
				refused = next(ctx, first)
			}
			return next(ctx, b)
		}
	}))
	wantAcked(t, runneltest.Process(t, s, "p", items(1, 2, 3)...), "1-0", "2-0", "3-0")
	if refused == nil || fmt.Sprint(seen) != "[2 3]" {
		t.Errorf("next answered %v, saw %v", refused, seen)
	}
}

// slowCodec takes its time, so that what is left of one iteration runs before the
// next one begins, with nothing that orders the two.
type slowCodec struct {
	codec.Codec
	pause time.Duration
}

func (c slowCodec) Decode(data []byte, record any) error {
	time.Sleep(c.pause)
	return c.Codec.Decode(data, record)
}

// Under the race detector: a late next between two iterations touches nothing
// that the consumer works with.
func TestALateNextBetweenIterations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		var late []error
		s := runnel.NewStream(runnel.New("contract", nil), "items", keyOfItem,
			&runnel.StreamOptions{Codec: slowCodec{codec.JSON, 2 * time.Millisecond}})
		s.Process("p", runnel.Each(func(context.Context, *runnel.Event, item) error { return nil }),
			middlewares(func(next runnel.Handler) runnel.Handler {
				return func(ctx context.Context, b *runnel.Batch) error {
					for _, old := range []*runnel.Batch{b, {}} {
						wg.Go(func() {
							time.Sleep(time.Millisecond)
							err := next(ctx, old)
							mu.Lock()
							defer mu.Unlock()
							late = append(late, err)
						})
					}
					return next(ctx, b)
				}
			}))
		wantAcked(t, runneltest.Process(t, s, "p", items(1, 2, 3)...), "1-0", "2-0", "3-0")
		wg.Wait()
		for _, err := range late {
			if err == nil {
				t.Error("a late next was let through")
			}
		}
		if len(late) != 6 {
			t.Errorf("%d calls came late, want 6", len(late))
		}
	})
}

// Events, and the batch itself, may be kept by a goroutine of middleware. Under
// the race detector nothing writes them any more.
func TestMiddlewareMayKeepBatchesAndEvents(t *testing.T) {
	for _, n := range []int{1, 2} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			type seen struct{ batch, inBatch, event string }
			var wg sync.WaitGroup
			var all []func() seen
			ended := make(chan struct{})
			var mu sync.Mutex
			var read []seen
			look := func(b *runnel.Batch, e *runnel.Event) seen {
				var ids []string
				for _, e := range b.Events {
					ids = append(ids, e.ID)
				}
				return seen{fmt.Sprint(b.Stream, b.Processor, b.Partition, b.Epoch), strings.Join(ids, " "), fmt.Sprint(e.ID, e.Fields(), e.Attempt)}
			}
			s := declareItems(runnel.EachBatch(n, 0, func(context.Context, []*runnel.Event, []item) error { return nil }),
				middlewares(func(next runnel.Handler) runnel.Handler {
					return func(ctx context.Context, b *runnel.Batch) error {
						err := next(ctx, b)
						e := b.Events[0]
						before := look(b, e)
						all = append(all, func() seen { return before })
						wg.Go(func() {
							for done := false; !done; {
								select {
								case <-ended:
									done = true
								default:
								}
								if got := look(b, e); got != before {
									mu.Lock()
									read = append(read, got)
									mu.Unlock()
									return
								}
							}
						})
						return err
					}
				}))
			r := runneltest.Process(t, s, "p", items(1, 2, 3, 4, 5, 6)...)
			close(ended)
			wg.Wait()
			wantErr(t, r.Err, nil)
			if len(read) > 0 || len(all) != 6/n {
				t.Errorf("of %d kept batches these changed: %v", len(all), read)
			}
		})
	}
}
