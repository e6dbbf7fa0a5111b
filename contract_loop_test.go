package runnel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/runneltest"
)

// sights are what loops saw: "<ID>=<record>", of Raw "<ID>~<record>", and "|"
// at the end of a batch.
type sights []string

func (s *sights) all(es []*runnel.Event, is []item) {
	for i := range es {
		*s = append(*s, fmt.Sprint(es[i].ID, "=", is[i].N))
	}
}

func (s *sights) records(is ...item) {
	for _, i := range is {
		*s = append(*s, fmt.Sprint(i.N))
	}
}

func (s *sights) raw(es ...*runnel.Event) {
	for _, e := range es {
		var i item
		err := codec.MsgPack.Decode(e.Data(), &i)
		*s = append(*s, fmt.Sprint(e.ID, "~", i.N))
		if err != nil {
			*s = append(*s, err.Error())
		}
	}
}

func (s *sights) end() { *s = append(*s, "|") }

type rangeWay struct {
	name string
	fn   runnel.ProcessFunc[item]
	want string
}

func oneByOne(s *sights) []rangeWay {
	return []rangeWay{
		{"Records", func(_ context.Context, ev *runnel.Events[item]) error {
			for i := range ev.Records() {
				s.records(i)
			}
			return nil
		}, "1 2 3"},
		{"All", func(_ context.Context, ev *runnel.Events[item]) error {
			for e, i := range ev.All() {
				s.all([]*runnel.Event{e}, []item{i})
			}
			return nil
		}, "1-0=1 2-0=2 3-0=3"},
		{"Raw", func(_ context.Context, ev *runnel.Events[item]) error {
			for e := range ev.Raw() {
				s.raw(e)
			}
			return nil
		}, "1-0~1 2-0~2 3-0~3"},
		{"Each", runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
			s.all([]*runnel.Event{e}, []item{i})
			return nil
		}), "1-0=1 2-0=2 3-0=3"},
	}
}

func inBatches(s *sights) []rangeWay {
	return []rangeWay{
		{"Take Records", func(_ context.Context, ev *runnel.Events[item]) error {
			for is := range ev.Take(2, 0).Records() {
				s.records(is...)
				s.end()
			}
			return nil
		}, "1 2 | 3 |"},
		{"Take All", func(_ context.Context, ev *runnel.Events[item]) error {
			for es, is := range ev.Take(2, 0).All() {
				s.all(es, is)
				s.end()
			}
			return nil
		}, "1-0=1 2-0=2 | 3-0=3 |"},
		{"Take Raw", func(_ context.Context, ev *runnel.Events[item]) error {
			for es := range ev.Take(2, 0).Raw() {
				s.raw(es...)
				s.end()
			}
			return nil
		}, "1-0~1 2-0~2 | 3-0~3 |"},
		{"EachBatch", runnel.EachBatch(2, 0, func(_ context.Context, es []*runnel.Event, is []item) error {
			s.all(es, is)
			s.end()
			return nil
		}), "1-0=1 2-0=2 | 3-0=3 |"},
	}
}

func TestEveryWayToRange(t *testing.T) {
	var seen sights
	for _, tt := range append(oneByOne(&seen), inBatches(&seen)...) {
		t.Run(tt.name, func(t *testing.T) {
			seen = nil
			got := runneltest.Process(t, declareItems(tt.fn, nil), "p", items(1, 2, 3)...)
			wantAcked(t, got, "1-0", "2-0", "3-0")
			wantErr(t, got.Err, nil)
			if s := strings.Join(seen, " "); s != tt.want {
				t.Errorf("saw %s, want %s", s, tt.want)
			}
		})
	}
}

func TestABatchIsAckedWhenTheLoopAsksForTheNext(t *testing.T) {
	s := declareItems(func(_ context.Context, ev *runnel.Events[item]) error {
		for i := range ev.Records() {
			if i.N == 3 {
				return errBad
			}
		}
		return nil
	}, nil)
	got := runneltest.Process(t, s, "p", items(1, 2, 3, 4)...)
	wantAcked(t, got, "1-0", "2-0")
	wantErr(t, got.Err, errBad)
}

func TestABatchIsAckedWhenTheFunctionReturnsNil(t *testing.T) {
	calls := 0
	s := declareItems(func(_ context.Context, ev *runnel.Events[item]) error {
		calls++
		for range ev.Records() {
			return nil
		}
		return nil
	}, nil)
	got := runneltest.Process(t, s, "p", items(1, 2)...)
	wantAcked(t, got, "1-0", "2-0")
	wantErr(t, got.Err, nil)
	// The third call ended with the release.
	if calls != 3 {
		t.Errorf("called %d times, want again after each return", calls)
	}
}

func TestBreakByItselfAcksNothing(t *testing.T) {
	s := declareItems(func(ctx context.Context, ev *runnel.Events[item]) error {
		for range ev.Records() {
			break
		}
		return errBad
	}, nil)
	got := runneltest.Process(t, s, "p", items(1)...)
	wantAcked(t, got)
	wantErr(t, got.Err, errBad)
}

func TestRangingAgainGoesOnBehindTheLastEvent(t *testing.T) {
	var seen []int
	s := declareItems(func(_ context.Context, ev *runnel.Events[item]) error {
		for i := range ev.Records() {
			seen = append(seen, i.N)
			break
		}
		for is := range ev.Take(2, 0).Records() {
			for _, i := range is {
				seen = append(seen, i.N)
			}
			if len(is) == 2 {
				return errBad
			}
		}
		return nil
	}, nil)
	got := runneltest.Process(t, s, "p", items(1, 2, 3)...)
	wantAcked(t, got, "1-0") // asking again acked it
	if fmt.Sprint(seen) != "[1 2 3]" {
		t.Errorf("saw %v", seen)
	}
}

func TestVariablesBeforeTheLoopLiveAsLongAsTheOwnership(t *testing.T) {
	var totals []int
	s := declareItems(func(_ context.Context, ev *runnel.Events[item]) error {
		total := 0
		for i := range ev.Records() {
			total += i.N
			totals = append(totals, total)
		}
		return nil
	}, nil)
	runneltest.Process(t, s, "p", items(1, 2, 3)...)
	if fmt.Sprint(totals) != "[1 3 6]" {
		t.Errorf("totals %v", totals)
	}
}

func TestReleaseEndsTheLoopNormally(t *testing.T) {
	var after, deferred int
	s := declareItems(func(_ context.Context, ev *runnel.Events[item]) error {
		defer func() { deferred++ }()
		for range ev.Records() {
		}
		after++
		return nil
	}, nil)
	got := runneltest.Events(t, s, "p").Records(items(1, 2)...).Release().Run()
	wantAcked(t, got, "1-0", "2-0")
	if got.Err != nil || after != 1 || deferred != 1 {
		t.Errorf("after the loop %d, defers %d, %v", after, deferred, got.Err)
	}
}

func TestAnErrorAfterTheLoopHasEndedGoesToRunAndItsEventsAreAcked(t *testing.T) {
	for _, policy := range []runnel.Policy{runnel.Halt, runnel.Quarantine, runnel.Ignore} {
		s := declareItems(func(_ context.Context, ev *runnel.Events[item]) error {
			for range ev.Records() {
			}
			return errBad
		}, &runnel.ProcessorOptions{OnError: policy})
		got := runneltest.Process(t, s, "p", items(1, 2)...)
		wantAcked(t, got, "1-0", "2-0")
		wantErr(t, got.Err, errBad)
	}
}

func TestTwoGoroutinesRangingPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan any, 1)
		s := declareItems(func(_ context.Context, ev *runnel.Events[item]) error {
			go func() {
				defer func() { told <- recover() }()
				time.Sleep(time.Second) // the loop waits for an event by now
				for range ev.Records() {
				}
			}()
			for range ev.Records() {
			}
			return nil
		}, nil)
		got := runneltest.Events(t, s, "p").Wait(2 * time.Second).Records(items(1)...).Run()
		wantAcked(t, got, "1-0")
		if text := fmt.Sprint(<-told); !strings.Contains(text, "two goroutines range over the same Events") {
			t.Errorf("the second one got %q", text)
		}
	})
}

func TestEventsKnowTheirPlace(t *testing.T) {
	s := declareItems(func(ctx context.Context, ev *runnel.Events[item]) error {
		if ev.Partition() != 5 || ev.Context() != ctx {
			t.Errorf("before the loop: partition %d, the function's own context %v", ev.Partition(), ev.Context() == ctx)
		}
		for e := range ev.Raw() {
			if e.Stream != "items" || e.Partition != 5 || e.Epoch != 9 || e.Attempt != 1 || e.Key() != "k" {
				t.Errorf("event %+v", e)
			}
		}
		return nil
	}, nil)
	runneltest.Events(t, s, "p").Partition(5).Epoch(9).Records(items(1)...).Run()
}

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
