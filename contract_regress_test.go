package runnel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

// middlewares are options with these middlewares.
func middlewares(ms ...runnel.Middleware) *runnel.ProcessorOptions {
	return &runnel.ProcessorOptions{Middleware: ms}
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

func TestSlicesOfTakeOfOneMayBeKept(t *testing.T) {
	var events [][]*runnel.Event
	var records, alone [][]item
	s := declareItems(func(_ context.Context, ev *runnel.Events[item]) error {
		for es, is := range ev.Take(1, 0).All() {
			if events, records = append(events, es), append(records, is); len(records) == 3 {
				break
			}
		}
		for is := range ev.Take(1, 0).Records() {
			alone = append(alone, is)
		}
		return nil
	}, nil)
	runneltest.Process(t, s, "p", items(1, 2, 3, 4, 5)...)
	var got []string
	for i := range events {
		got = append(got, events[i][0].ID)
	}
	if fmt.Sprint(got, records, alone) != "[1-0 2-0 3-0] [[{1}] [{2}] [{3}]] [[{4}] [{5}]]" {
		t.Errorf("kept %v %v %v", got, records, alone)
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
