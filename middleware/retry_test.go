package middleware_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/middleware"
	"github.com/runnel-go/runnel/runneltest"
)

func TestRetryWaitsLongerEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		var attempts []int
		s := stream(runnel.Each(func(_ context.Context, e *runnel.Event, _ Order) error {
			at, attempts = append(at, time.Now()), append(attempts, e.Attempt)
			return errRefund
		}), runnel.Halt, middleware.RetryInPlace(9, time.Second))
		got := runneltest.Process(t, s, "p", Order{"a", 1})
		wantAcked(t, got)
		if !errors.Is(got.Err, errRefund) || len(at) != 9 {
			t.Fatalf("%d tries, then %v", len(at), got.Err)
		}
		wait := time.Second
		for i := 1; i < len(at); i++ {
			if d := at[i].Sub(at[i-1]); d < wait/2 || d > wait {
				t.Errorf("waited %v before try %d, want %v to %v", d, i+1, wait/2, wait)
			}
			if attempts[i] != i+1 {
				t.Errorf("try %d says it is attempt %d", i+1, attempts[i])
			}
			wait = min(2*wait, 30*time.Second)
		}
	})
}

func TestRetryHasJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := map[time.Duration]bool{}
		var last time.Time
		s := stream(runnel.Each(func(_ context.Context, e *runnel.Event, _ Order) error {
			if e.Attempt > 1 {
				waits[time.Since(last)] = true
				return nil
			}
			last = time.Now()
			return errRefund
		}), runnel.Halt, middleware.RetryInPlace(2, time.Second))
		runneltest.Process(t, s, "p", make([]Order, 20)...)
		if len(waits) < 10 {
			t.Errorf("only %d different waits in 20", len(waits))
		}
	})
}

func TestRetryStopsAtSuccess(t *testing.T) {
	n := 0
	s := stream(runnel.Each(func(context.Context, *runnel.Event, Order) error {
		if n++; n < 3 {
			return errRefund
		}
		return nil
	}), runnel.Halt, middleware.RetryInPlace(5, time.Millisecond))
	got := runneltest.Process(t, s, "p", Order{"a", 1})
	wantAcked(t, got, "1-0")
	if n != 3 || got.Err != nil {
		t.Errorf("%d calls, %v", n, got.Err)
	}
}

func TestRetryRepeatsOnlyWhatFailed(t *testing.T) {
	var seen [][]int
	s := stream(inBatches(&seen), runnel.Halt, middleware.RetryInPlace(3, 0))
	got := runneltest.Process(t, s, "p", Order{"a", 1}, Order{"a", -2}, Order{"a", 3}, Order{"a", -4})
	wantSeen(t, seen, [][]int{{1, -2, 3, -4}, {-2, -4}, {-2, -4}})
	wantAcked(t, got, "1-0", "3-0")
	if !errors.Is(got.Err, errRefund) {
		t.Errorf("ended with %v", got.Err)
	}
}

// The retried events all fail: the events that had succeeded before are still acked.
func TestRetryRemembersWhatSucceeded(t *testing.T) {
	n := 0
	s := stream(runnel.EachBatch(10, 0, func(_ context.Context, events []*runnel.Event, _ []Order) error {
		if n++; n == 1 {
			return runnel.FailedEvents(errRefund, events[1])
		}
		return errRefund
	}), runnel.Halt, middleware.RetryInPlace(2, 0))
	got := runneltest.Process(t, s, "p", Order{"a", 1}, Order{"a", 2}, Order{"a", 3})
	wantAcked(t, got, "1-0", "3-0")
	if !errors.Is(got.Err, errRefund) || n != 2 {
		t.Errorf("ended with %v after %d calls", got.Err, n)
	}
}

func TestRetryEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		s := stream(runnel.Each(func(context.Context, *runnel.Event, Order) error { n++; return errRefund }), runnel.Halt, middleware.RetryInPlace(3, time.Hour))
		began := time.Now()
		got := runneltest.Events(t, s, "p").Records(Order{"a", 1}).Wait(time.Second).Lose().Run()
		wantAcked(t, got)
		if n != 1 || time.Since(began) != time.Second {
			t.Errorf("%d calls in %v", n, time.Since(began))
		}
	})
}

func TestRetryLeavesUndecodableAlone(t *testing.T) {
	calls := 0
	count := func(next runnel.Handler) runnel.Handler {
		return func(ctx context.Context, b *runnel.Batch) error { calls++; return next(ctx, b) }
	}
	s := stream(refuse, runnel.Ignore, middleware.RetryInPlace(5, time.Hour), count)
	got := runneltest.Events(t, s, "p").Raw(map[string]string{"data": "\xc1"}).Run()
	wantAcked(t, got, "1-0")
	if calls != 1 || got.Ignored != 1 {
		t.Errorf("%d calls, %+v", calls, got)
	}
}
