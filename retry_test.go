// A failed event is attempted again at the configured gaps, in the order that its Retry keeps, and
// is a dead letter after its last attempt.

package runnel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

// retrying is a Retry whose waits are without chance.
func retrying(most int, order runnel.RetryOrder) *runnel.ProcessorOptions {
	return &runnel.ProcessorOptions{Retry: &runnel.Retry{Max: most, MinBackoff: time.Second, MaxBackoff: 10 * time.Second, Factor: 3, Jitter: -1, Order: order}}
}

// keyed declares a stream whose keys are "k<N mod keys>".
func keyed(keys int, fn runnel.ProcessFunc[item], opts *runnel.ProcessorOptions) *runnel.Stream[item] {
	s := runnel.NewStream(runnel.New("shop", nil), "items", func(i item) string { return fmt.Sprint("k", i.N%keys) }, nil)
	s.Process("p", fn, opts)
	return s
}

func wantAttempts(t *testing.T, got *runneltest.Result, want ...string) {
	t.Helper()
	var all []string
	for _, a := range got.Attempts {
		all = append(all, fmt.Sprintf("%s #%d at %v", a.ID, a.Number, a.At.Round(100*time.Millisecond)))
	}
	if !slices.Equal(all, want) {
		t.Errorf("attempts\n%s\nwant\n%s", strings.Join(all, "\n"), strings.Join(want, "\n"))
	}
}

func TestAnEventIsAttemptedAgainAtTheConfiguredGaps(t *testing.T) {
	var seen []int
	got := runneltest.Process(t, declareItems(runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
		seen = append(seen, e.Attempt)
		if e.Attempt < 3 {
			return errBad
		}
		return nil
	}), retrying(5, 0)), "p", items(7)...)
	wantAttempts(t, got, "1-0 #1 at 0s", "1-0 #2 at 1s", "1-0 #3 at 4s")
	wantAcked(t, got, "1-0")
	if fmt.Sprint(seen) != "[1 2 3]" || got.Dead != nil || got.Parked != nil || got.Err != nil {
		t.Errorf("the function saw %v; %+v", seen, got)
	}
}

func TestAfterMaxAttemptsAnEventIsADeadLetter(t *testing.T) {
	for most := 1; most <= 4; most++ {
		calls := 0
		got := runneltest.Process(t, declareItems(runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
			if i.N == 2 {
				calls++
				return errBad
			}
			return nil
		}), retrying(most, 0)), "p", items(1, 2, 3)...)
		wantAcked(t, got, "1-0", "3-0")
		if calls != most || len(got.Dead) != 1 {
			t.Fatalf("Max %d: %d calls, dead letters %v", most, calls, got.Dead)
		}
		d := got.Dead[0]
		if d.ID != "2-0" || d.Key != "k" || d.Attempts != most || d.Reason != "failed" || !strings.Contains(d.Error, errBad.Error()) {
			t.Errorf("Max %d: %+v", most, d)
		}
	}
}

// Three events of one key and two of another; the first fails twice.
func TestTheOrders(t *testing.T) {
	for _, tt := range []struct {
		order runnel.RetryOrder
		want  string
	}{
		{runnel.OrderPartition, "1#1 1#2 1#3 2#1 3#1 4#1 5#1"},
		{runnel.OrderKey, "1#1 2#1 4#1 1#2 1#3 3#1 5#1"},
		{runnel.OrderNone, "1#1 2#1 3#1 4#1 5#1 1#2 1#3"},
	} {
		t.Run(tt.order.String(), func(t *testing.T) {
			var seen []string
			got := runneltest.Process(t, keyed(2, runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
				seen = append(seen, fmt.Sprint(i.N, "#", e.Attempt))
				if i.N == 1 && e.Attempt < 3 {
					return errBad
				}
				return nil
			}), retrying(5, tt.order)), "p", items(1, 2, 3, 4, 5)...)
			if s := strings.Join(seen, " "); s != tt.want {
				t.Errorf("processed %s, want %s", s, tt.want)
			}
			if len(got.Acked) != 5 || got.Dead != nil || got.Parked != nil {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestWhatAFunctionMaySayOfAnEvent(t *testing.T) {
	wrapped := func(wrap func(error) error) runnel.ProcessFunc[item] {
		return runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
			if i.N == 2 && e.Attempt < 3 {
				return fmt.Errorf("around: %w", wrap(errBad))
			}
			return nil
		})
	}
	after := wrapped(func(err error) error { return runnel.RetryAfter(err, 42*time.Second) })
	got := runneltest.Process(t, declareItems(after, retrying(5, 0)), "p", items(1, 2, 3)...)
	wantAttempts(t, got, "1-0 #1 at 0s", "2-0 #1 at 0s", "2-0 #2 at 42s", "2-0 #3 at 1m24s", "3-0 #1 at 1m24s")
	got = runneltest.Process(t, declareItems(after, nil), "p", items(1, 2, 3)...)
	wantErr(t, got.Err, errBad) // without a Retry it is just the error
	wantAcked(t, got, "1-0")

	for _, opts := range []*runnel.ProcessorOptions{nil, retrying(5, runnel.OrderKey)} {
		got = runneltest.Process(t, declareItems(wrapped(runnel.DeadLetter), opts), "p", items(1, 2, 3)...)
		wantAcked(t, got, "1-0", "3-0")
		if len(got.Dead) != 1 || got.Dead[0].ID != "2-0" || got.Dead[0].Reason != "dead" || got.Dead[0].Attempts != 1 || got.Err != nil {
			t.Errorf("Dead with %+v: %+v", opts, got)
		}
		got = runneltest.Process(t, declareItems(wrapped(runnel.Drop), opts), "p", items(1, 2, 3)...)
		wantAcked(t, got, "1-0", "2-0", "3-0")
		if got.Dropped != 1 || got.Dead != nil || got.Err != nil || got.Ignored != 0 {
			t.Errorf("Drop with %+v: %+v", opts, got)
		}
	}
}

func TestWhatIsSaidAboutNoErrorIsNoError(t *testing.T) {
	for name, err := range map[string]error{"RetryAfter": runnel.RetryAfter(nil, time.Second), "Dead": runnel.DeadLetter(nil), "Drop": runnel.Drop(nil)} {
		if err != nil {
			t.Errorf("%s(nil) is %v", name, err)
		}
	}
	for _, err := range []error{runnel.RetryAfter(errBad, 0), runnel.DeadLetter(errBad), runnel.Drop(errBad)} {
		if !errors.Is(err, errBad) || err.Error() != errBad.Error() {
			t.Errorf("%v hides the error", err)
		}
	}
}

func TestALaterAttemptMayBeDroppedOrDead(t *testing.T) {
	for name, wrap := range map[string]func(error) error{"drop": runnel.Drop, "dead": runnel.DeadLetter} {
		got := runneltest.Process(t, declareItems(runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
			if e.Attempt == 2 {
				return wrap(errBad)
			}
			return errBad
		}), retrying(5, runnel.OrderNone)), "p", items(1)...)
		wantAttempts(t, got, "1-0 #1 at 0s", "1-0 #2 at 1s")
		if dead := len(got.Dead) == 1 && got.Dead[0].Attempts == 2; dead != (name == "dead") || (got.Dropped == 1) != (name == "drop") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Of a batch only the events of FailedEvents are attempted again, one by one;
// without it all of them are.
func TestOfABatchTheFailedEventsAreAttemptedAgain(t *testing.T) {
	for _, part := range []bool{true, false} {
		var seen []string
		got := runneltest.Process(t, keyed(10, runnel.EachBatch(4, 0, func(_ context.Context, es []*runnel.Event, is []item) error {
			line := ""
			for i := range is {
				line += fmt.Sprint(is[i].N, "#", es[i].Attempt, " ")
			}
			seen = append(seen, strings.TrimSpace(line))
			switch {
			case es[0].Attempt > 1:
				return nil
			case part && len(es) == 4:
				return runnel.FailedEvents(errBad, es[1], es[3])
			case len(es) == 4:
				return errBad
			}
			return nil
		}), retrying(3, runnel.OrderKey)), "p", items(1, 2, 3, 4, 5)...)
		want := "1#1 2#1 3#1 4#1|5#1|2#2|4#2"
		if !part {
			want = "1#1 2#1 3#1 4#1|5#1|1#2|2#2|3#2|4#2"
		}
		if s := strings.Join(seen, "|"); s != want {
			t.Errorf("processed %s, want %s", s, want)
		}
		if len(got.Acked) != 5 || got.Parked != nil || got.Err != nil {
			t.Errorf("%+v", got)
		}
	}
}

func TestWhatCannotBeDecodedIsADeadLetterAtOnce(t *testing.T) {
	fn := runnel.EachBatch(5, 0, func(_ context.Context, _ []*runnel.Event, is []item) error { return nil })
	s := keyed(1, fn, retrying(5, runnel.OrderKey))
	got := runneltest.Events(t, s, "p").Records(items(1)...).Raw(map[string]string{"data": "\xc1"}).Records(items(3)...).Run()
	wantAcked(t, got, "1-0", "3-0")
	if len(got.Dead) != 1 || got.Dead[0].ID != "2-0" || got.Dead[0].Reason != "decode" || got.Dead[0].Attempts != 1 {
		t.Errorf("dead letters %+v", got.Dead)
	}
	if got.Dead[0].Error == "" {
		t.Error("nothing says why")
	}
}

// What stands behind a failed event in the same read waits for it, also where
// the batch was cut short.
func TestABatchCutShortKeepsTheOrderOfAKey(t *testing.T) {
	var seen []string
	fn := runnel.EachBatch(5, 0, func(_ context.Context, es []*runnel.Event, is []item) error {
		seen = append(seen, fmt.Sprint(is[0].N, "#", es[0].Attempt))
		if is[0].N == 1 && es[0].Attempt == 1 {
			return errBad
		}
		return nil
	})
	s := keyed(1, fn, retrying(5, runnel.OrderKey))
	runneltest.Events(t, s, "p").Records(items(1)...).Raw(map[string]string{"data": "\xc1"}).Records(items(3)...).Run()
	if s := strings.Join(seen, " "); s != "1#1 1#2 3#1" {
		t.Errorf("processed %s", s)
	}
}

func TestARetryOutOfRangePanics(t *testing.T) {
	for want, r := range map[string]runnel.Retry{
		"Max 0":         {},
		"Max -1":        {Max: -1},
		"unknown order": {Max: 1, Order: 9},
		"Factor 0.5":    {Max: 1, Factor: 0.5},
		"Jitter 2":      {Max: 1, Jitter: 2},
		"negative":      {Max: 1, MinBackoff: -1},
	} {
		wantPanic(t, want, func() { declareItems(failAt, &runnel.ProcessorOptions{Retry: &r}) })
		wantPanic(t, want, func() { runnel.New("x", &runnel.Options{Processor: runnel.ProcessorOptions{Retry: &r}}) })
	}
}

// An error before the first event, and a function that does not range, are no
// event's fault: the policy decides.
func TestNoEventsFaultIsForThePolicyAlsoWithARetry(t *testing.T) {
	got := runneltest.Process(t, declareItems(func(context.Context, *runnel.Events[item]) error { return errBad }, retrying(3, 0)), "p", items(1)...)
	wantErr(t, got.Err, errBad)
	got = runneltest.Process(t, declareItems(func(context.Context, *runnel.Events[item]) error { return nil }, retrying(3, 0)), "p", items(1)...)
	wantErr(t, got.Err, runnel.ErrNotConsumed)
}

func TestAReleaseLeavesWhatIsParked(t *testing.T) {
	s := keyed(2, runnel.Each(func(_ context.Context, _ *runnel.Event, i item) error {
		if i.N == 1 {
			return runnel.RetryAfter(errBad, time.Hour)
		}
		return nil
	}), retrying(3, runnel.OrderKey))
	got := runneltest.Events(t, s, "p").Records(items(1, 2, 3)...).Release().Run()
	wantAcked(t, got, "2-0")
	if fmt.Sprint(got.Parked) != "[1-0 3-0]" && fmt.Sprint(got.Parked) != "[1-0]" {
		t.Errorf("parked %v", got.Parked)
	}
}
