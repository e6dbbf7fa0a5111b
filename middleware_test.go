// Middleware wraps the function and the errors of its batches; it may change what the loop sees,
// and call the rest again.

package runnel_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

// retry calls next again after each error, up to n times in all.
func retry(n int) runnel.Middleware {
	return func(next runnel.Handler) runnel.Handler {
		return func(ctx context.Context, b *runnel.Batch) (err error) {
			for range n {
				if err = next(ctx, b); err == nil {
					return nil
				}
			}
			return err
		}
	}
}

func TestMiddlewareWrapsInOrder(t *testing.T) {
	var order []string
	named := func(name string) runnel.Middleware {
		return func(next runnel.Handler) runnel.Handler {
			return func(ctx context.Context, b *runnel.Batch) error {
				order = append(order, name)
				defer func() { order = append(order, "/"+name) }()
				return next(ctx, b)
			}
		}
	}
	app := runnel.New("contract", &runnel.Options{Processor: runnel.ProcessorOptions{Middleware: []runnel.Middleware{named("app")}}})
	s := runnel.NewStream(app, "items", keyOfItem, nil)
	s.Process("p", runnel.Each(func(context.Context, *runnel.Event, item) error { order = append(order, "fn"); return nil }),
		&runnel.ProcessorOptions{Middleware: []runnel.Middleware{named("a"), named("b")}})
	runneltest.Process(t, s, "p", items(1)...)
	if got := strings.Join(order, " "); got != "app a b fn /b /a /app" {
		t.Errorf("called %s", got)
	}
}

func TestMiddlewareSeesTheRealErrorAndTheBatch(t *testing.T) {
	var got []string
	look := func(next runnel.Handler) runnel.Handler {
		return func(ctx context.Context, b *runnel.Batch) error {
			err := next(ctx, b)
			got = append(got, fmt.Sprint(b.Stream, "/", b.Processor, " ", b.Partition, " ", b.Epoch, " ", len(b.Events), " ", err == errBad))
			return err
		}
	}
	s := declareItems(runnel.EachBatch(2, 0, func(context.Context, []*runnel.Event, []item) error { return errBad }),
		&runnel.ProcessorOptions{Middleware: []runnel.Middleware{look}})
	runneltest.Events(t, s, "p").Partition(3).Epoch(7).Records(items(1, 2, 3)...).Run()
	if want := []string{"items/p 3 7 2 true"}; !slices.Equal(got, want) {
		t.Errorf("saw %v, want %v", got, want)
	}
}

func TestMiddlewareMayAckWithoutTheFunction(t *testing.T) {
	skip := func(next runnel.Handler) runnel.Handler {
		return func(ctx context.Context, b *runnel.Batch) error {
			if b.Events[0].ID == "2-0" {
				return nil
			}
			return next(ctx, b)
		}
	}
	var seen []int
	s := declareItems(runnel.Each(func(_ context.Context, _ *runnel.Event, i item) error { seen = append(seen, i.N); return nil }),
		&runnel.ProcessorOptions{Middleware: []runnel.Middleware{skip}})
	wantAcked(t, runneltest.Process(t, s, "p", items(1, 2, 3)...), "1-0", "2-0", "3-0")
	if !slices.Equal(seen, []int{1, 3}) {
		t.Errorf("saw %v", seen)
	}
}

func TestMiddlewareMayPassASmallerBatch(t *testing.T) {
	odd := func(next runnel.Handler) runnel.Handler {
		return func(ctx context.Context, b *runnel.Batch) error {
			p := *b
			p.Events = nil
			for i, e := range b.Events {
				if i%2 == 0 {
					p.Events = append(p.Events, e)
				}
			}
			return next(ctx, &p)
		}
	}
	var seen []string
	s := declareItems(runnel.EachBatch(5, 0, func(_ context.Context, es []*runnel.Event, is []item) error {
		for n := range es {
			seen = append(seen, fmt.Sprint(es[n].ID, "=", is[n].N))
		}
		return nil
	}), &runnel.ProcessorOptions{Middleware: []runnel.Middleware{odd}})
	wantAcked(t, runneltest.Process(t, s, "p", items(1, 2, 3, 4, 5)...), "1-0", "2-0", "3-0", "4-0", "5-0")
	if got := strings.Join(seen, " "); got != "1-0=1 3-0=3 5-0=5" {
		t.Errorf("saw %s", got)
	}
}

func TestRetryIsANewCallOnTheSameBatch(t *testing.T) {
	var calls []string
	s := declareItems(func(_ context.Context, ev *runnel.Events[item]) error {
		fresh := true // this call's state
		for e, i := range ev.All() {
			calls = append(calls, fmt.Sprint(i.N, ":", e.Attempt, ":", fresh))
			fresh = false
			if i.N == 2 && e.Attempt < 3 {
				return errBad
			}
		}
		return nil
	}, &runnel.ProcessorOptions{Middleware: []runnel.Middleware{retry(3)}})
	got := runneltest.Process(t, s, "p", items(1, 2, 3)...)
	wantAcked(t, got, "1-0", "2-0", "3-0")
	wantErr(t, got.Err, nil)
	if got, want := strings.Join(calls, " "), "1:1:true 2:1:false 2:2:true 2:3:true 3:1:false"; got != want {
		t.Errorf("called with %s, want %s", got, want)
	}
}

func TestRetryDecodesRecordsAnew(t *testing.T) {
	type box struct{ Values map[string]int }
	app := runnel.New("contract", nil)
	s := runnel.NewStream(app, "boxes", func(box) string { return "" }, nil)
	var seen []int
	tries := 0
	s.Process("p", runnel.EachBatch(2, 0, func(_ context.Context, _ []*runnel.Event, boxes []box) error {
		for _, b := range boxes {
			seen = append(seen, b.Values["x"])
			b.Values["x"] = -1
		}
		if tries++; tries < 3 {
			return errBad
		}
		return nil
	}), &runnel.ProcessorOptions{Middleware: []runnel.Middleware{retry(3)}})
	wantAcked(t, runneltest.Process(t, s, "p", box{map[string]int{"x": 1}}, box{map[string]int{"x": 2}}), "1-0", "2-0")
	if !slices.Equal(seen, []int{1, 2, 1, 2, 1, 2}) {
		t.Errorf("saw %v", seen)
	}
}

// A new call may ask for less at a time than the one before did: the batch stays
// what it is.
func TestRetryMayRangeDifferently(t *testing.T) {
	var seen []string
	calls := 0
	s := declareItems(func(_ context.Context, ev *runnel.Events[item]) error {
		calls++
		if calls > 1 {
			for i := range ev.Records() {
				seen = append(seen, fmt.Sprint(i.N))
			}
			return nil
		}
		for range ev.Take(3, 0).Records() {
			return errBad
		}
		return nil
	}, &runnel.ProcessorOptions{Middleware: []runnel.Middleware{retry(2)}})
	wantAcked(t, runneltest.Process(t, s, "p", items(1, 2, 3, 4)...), "1-0", "2-0", "3-0", "4-0")
	if got := strings.Join(seen, " "); got != "1 2 3 4" {
		t.Errorf("saw %s", got)
	}
}

func TestAPanicOfMiddlewareIsAnError(t *testing.T) {
	s := declareItems(failAt, &runnel.ProcessorOptions{OnError: runnel.Ignore, Middleware: []runnel.Middleware{
		func(runnel.Handler) runnel.Handler {
			return func(context.Context, *runnel.Batch) error { panic("oh") }
		},
	}})
	got := runneltest.Process(t, s, "p", items(1)...)
	wantAcked(t, got, "1-0")
	if got.Ignored != 1 || !strings.Contains(got.IgnoredErrs[0].Error(), "panic: oh") {
		t.Errorf("%+v", got)
	}
}

type key struct{}

func TestTheContextOfMiddlewareReachesTheLoop(t *testing.T) {
	n := 0
	number := func(next runnel.Handler) runnel.Handler {
		return func(ctx context.Context, b *runnel.Batch) error {
			n++
			return next(context.WithValue(ctx, key{}, n), b)
		}
	}
	var seen []any
	s := declareItems(runnel.Each(func(ctx context.Context, _ *runnel.Event, _ item) error {
		seen = append(seen, ctx.Value(key{}))
		return nil
	}), &runnel.ProcessorOptions{Middleware: []runnel.Middleware{number}})
	runneltest.Process(t, s, "p", items(1, 2)...)
	if fmt.Sprint(seen) != "[1 2]" {
		t.Errorf("saw %v", seen)
	}
}

// values is a context that cannot be compared.
type values struct {
	context.Context
	of map[string]string
}

// Any context may be passed on, and each iteration has its own.
func TestMiddlewareMayPassAnyContext(t *testing.T) {
	n := 0
	pass := func(next runnel.Handler) runnel.Handler {
		return func(ctx context.Context, b *runnel.Batch) error {
			n++
			return next(values{ctx, map[string]string{"n": fmt.Sprint(n)}}, b)
		}
	}
	var seen []string
	s := declareItems(func(_ context.Context, events *runnel.Events[item]) error {
		for range events.Records() {
			seen = append(seen, events.Context().(values).of["n"])
		}
		return nil
	}, &runnel.ProcessorOptions{Middleware: []runnel.Middleware{pass}})
	runneltest.Events(t, s, "p").Partition(0).Epoch(7).Records(items(1, 2, 3)...).Run()
	if got := strings.Join(seen, " "); got != "1 2 3" {
		t.Errorf("contexts %s", got)
	}
}

// middlewares are options with these middlewares.
func middlewares(ms ...runnel.Middleware) *runnel.ProcessorOptions {
	return &runnel.ProcessorOptions{Middleware: ms}
}

// What middleware leaves out of the batch that it was given is done with.
func TestMiddlewareMayChangeTheBatchItself(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(b *runnel.Batch)
		want   string
	}{
		{"shorten", func(b *runnel.Batch) { b.Events = b.Events[:1] }, "1-0=1"},
		{"delete in place", func(b *runnel.Batch) { b.Events = slices.Delete(b.Events, 0, 1) }, "2-0=2 3-0=3"},
		{"delete in the middle", func(b *runnel.Batch) {
			b.Events = slices.DeleteFunc(b.Events, func(e *runnel.Event) bool { return e.ID == "2-0" })
		}, "1-0=1 3-0=3"},
		{"reverse", func(b *runnel.Batch) { slices.Reverse(b.Events) }, "3-0=3 2-0=2 1-0=1"},
	} {
		for _, fail := range []bool{false, true} {
			t.Run(fmt.Sprint(tt.name, ", fail: ", fail), func(t *testing.T) {
				var seen []string
				s := declareItems(runnel.EachBatch(3, 0, func(_ context.Context, es []*runnel.Event, is []item) error {
					for n := range es {
						seen = append(seen, fmt.Sprint(es[n].ID, "=", is[n].N))
					}
					if fail {
						return runnel.FailedEvents(errBad, es[len(es)-1])
					}
					return nil
				}), middlewares(func(next runnel.Handler) runnel.Handler {
					return func(ctx context.Context, b *runnel.Batch) error {
						tt.change(b)
						return next(ctx, b)
					}
				}))
				r := runneltest.Process(t, s, "p", items(1, 2, 3)...)
				if got := strings.Join(seen, " "); got != tt.want {
					t.Errorf("saw %s, want %s", got, tt.want)
				}
				if !fail {
					wantErr(t, r.Err, nil)
					wantAcked(t, r, "1-0", "2-0", "3-0")
					return
				}
				wantErr(t, r.Err, errBad)
				last, _, _ := strings.Cut(seen[len(seen)-1], "=")
				wantAcked(t, r, slices.DeleteFunc([]string{"1-0", "2-0", "3-0"}, func(id string) bool { return id == last })...)
			})
		}
	}
}

// What was made for a loop without records has none to reuse.
func TestRetryMayAskForRecordsAfterRaw(t *testing.T) {
	var seen []string
	s := declareItems(func(_ context.Context, ev *runnel.Events[item]) error {
		if len(seen) == 0 {
			for e := range ev.Raw() {
				seen = append(seen, e.ID)
				return errBad
			}
		}
		for i := range ev.Records() {
			seen = append(seen, fmt.Sprint(i.N))
		}
		return nil
	}, middlewares(retry(2)))
	wantAcked(t, runneltest.Process(t, s, "p", items(1, 2)...), "1-0", "2-0")
	if got := strings.Join(seen, " "); got != "1-0 1 2" {
		t.Errorf("saw %s", got)
	}
}
