package middleware_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/middleware"
	"github.com/runnel-go/runnel/runneltest"
)

func TestTimeoutEndsAnIteration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stream(func(_ context.Context, events *runnel.Events[Order]) error {
			for o := range events.Records() {
				began := time.Now()
				select {
				case <-events.Context().Done():
					if d := time.Since(began); d != 2*time.Second || !errors.Is(context.Cause(events.Context()), middleware.ErrTimeout) {
						t.Errorf("ended after %v with %v", d, context.Cause(events.Context()))
					}
					return events.Context().Err()
				case <-time.After(time.Duration(o.Amount) * time.Second):
				}
			}
			return nil
		}, runnel.Halt, middleware.Timeout(2*time.Second))
		// Each iteration has its own two seconds.
		got := runneltest.Process(t, s, "p", Order{"a", 1}, Order{"a", 1}, Order{"a", 1}, Order{"a", 3})
		wantAcked(t, got, "1-0", "2-0", "3-0")
		if !errors.Is(got.Err, middleware.ErrTimeout) || !errors.Is(got.Err, context.DeadlineExceeded) ||
			!strings.Contains(got.Err.Error(), "middleware.Timeout: the iteration took longer than 2s") {
			t.Errorf("ended with %v", got.Err)
		}
	})
}

func TestTimeoutLeavesOtherErrorsAlone(t *testing.T) {
	s := stream(refuse, runnel.Halt, middleware.Timeout(time.Hour))
	got := runneltest.Process(t, s, "p", Order{"a", -1})
	if !errors.Is(got.Err, errRefund) || errors.Is(got.Err, middleware.ErrTimeout) {
		t.Errorf("ended with %v", got.Err)
	}
}

func TestTimeoutThenDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stream(runnel.Each(func(context.Context, *runnel.Event, Order) error {
			time.Sleep(time.Minute) // does not look at its context
			return nil
		}), runnel.Halt, middleware.Timeout(time.Second))
		wantAcked(t, runneltest.Process(t, s, "p", Order{"a", 1}), "1-0")
	})
}

func TestMistakesPanic(t *testing.T) {
	for want, fn := range map[string]func(){
		"middleware.Timeout(0s): want a positive duration":                        func() { middleware.Timeout(0) },
		"middleware.Retry(0, 1s): want at least 1 attempt":                        func() { middleware.Retry(0, time.Second) },
		"middleware.Retry(1, -1ns): want at least 1 attempt and no negative wait": func() { middleware.Retry(1, -1) },
		"middleware.Expire(-1s): want a positive duration":                        func() { middleware.Expire(-time.Second) },
		"NewStream orders.dead: the app has a stream of that name":                func() { s := stream(refuse, 0); middleware.DeadLetters(s); middleware.DeadLetters(s) },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, want) {
					t.Errorf("panicked with %q, want %q", text, want)
				}
			}()
			fn()
		}()
	}
}
