// A loop sees the events of its partition one at a time and in order. A batch is acked when
// the loop asks for the next one, or when the function returns nil.

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

func TestABatchIsTheLoopsToKeepWhenALoopOverSingleEventsFollows(t *testing.T) {
	var kept []item
	s := declareItems(func(_ context.Context, ev *runnel.Events[item]) error {
		for is := range ev.Take(2, 0).Records() {
			kept = is
			break
		}
		for range ev.Records() {
		}
		return nil
	}, nil)
	runneltest.Process(t, s, "p", items(1, 2, 3, 4)...)
	if fmt.Sprint(kept) != "[{1} {2}]" {
		t.Errorf("kept %v", kept)
	}
}

// A loop that is suspended when its ownership ends for an error that is not its own
// is ended like any other: what it deferred runs.
func TestTheCodeBehindALoopRunsAfterErrorsOfOthers(t *testing.T) {
	garbage := func(s *runneltest.Script[item]) *runneltest.Script[item] {
		return s.Raw(map[string]string{"data": "\xc1"})
	}
	record := func(s *runneltest.Script[item]) *runneltest.Script[item] { return s.Records(items(2)...) }
	refuse := func(next runnel.Handler) runnel.Handler {
		return func(ctx context.Context, b *runnel.Batch) error {
			if b.Events[0].ID == "2-0" {
				return errBad
			}
			return next(ctx, b)
		}
	}
	var decode *runnel.DecodeError
	for _, tt := range []struct {
		name   string
		policy runnel.Policy
		opts   []runnel.Middleware
		second func(*runneltest.Script[item]) *runneltest.Script[item]
		is     func(error) bool
	}{
		{"decode error, Halt", runnel.Halt, nil, garbage, func(err error) bool { return errors.As(err, &decode) }},
		{"decode error, Quarantine", runnel.Quarantine, nil, garbage, func(err error) bool { return errors.As(err, &decode) }},
		{"middleware, Halt", runnel.Halt, []runnel.Middleware{refuse}, record, func(err error) bool { return errors.Is(err, errBad) }},
		{"middleware, Quarantine", runnel.Quarantine, []runnel.Middleware{refuse}, record, func(err error) bool { return errors.Is(err, errBad) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			s := declareItems(func(_ context.Context, ev *runnel.Events[item]) error {
				defer func() { got = append(got, "deferred") }()
				for i := range ev.Records() {
					got = append(got, fmt.Sprint(i.N))
				}
				got = append(got, "behind")
				return nil
			}, &runnel.ProcessorOptions{OnError: tt.policy, Middleware: tt.opts})
			r := tt.second(runneltest.Events(t, s, "p").Records(items(1)...)).Records(items(3)...).Run()
			if text := strings.Join(got, " "); text != "1 behind deferred" {
				t.Errorf("ran %s", text)
			}
			wantAcked(t, r, "1-0")
			failed := r.Err
			if tt.policy == runnel.Quarantine {
				failed = r.Quarantined
			}
			if !tt.is(failed) {
				t.Errorf("error %v, quarantined %v", r.Err, r.Quarantined)
			}
		})
	}
}

func TestANestedRangePanicsWithAClearMessage(t *testing.T) {
	inner := map[string]func(*runnel.Events[item]){
		"Records": func(ev *runnel.Events[item]) {
			for range ev.Records() {
				return
			}
		},
		"All": func(ev *runnel.Events[item]) {
			for range ev.All() {
				return
			}
		},
		"Raw": func(ev *runnel.Events[item]) {
			for range ev.Raw() {
				return
			}
		},
		"Take": func(ev *runnel.Events[item]) {
			for range ev.Take(2, 0).Records() {
				return
			}
		},
	}
	for name, nested := range inner {
		t.Run(name, func(t *testing.T) {
			s := declareItems(func(_ context.Context, ev *runnel.Events[item]) error {
				for range ev.Take(1, 0).All() {
					nested(ev)
				}
				return nil
			}, nil)
			r := runneltest.Process(t, s, "p", items(1, 2)...)
			var p *runnel.PanicError
			if !errors.As(r.Err, &p) || !strings.Contains(r.Err.Error(), "a loop inside a loop") {
				t.Errorf("error %v", r.Err)
			}
			wantAcked(t, r)
		})
	}
}
