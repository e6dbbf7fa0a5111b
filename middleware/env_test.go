package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/middleware"
	"github.com/runnel-go/runnel/runneltest"
)

type Order struct {
	Customer string
	Amount   int
}

func customer(o Order) string { return o.Customer }

var errRefund = errors.New("refund")

// stream declares a stream with one processor, "p".
func stream(fn runnel.ProcessFunc[Order], policy runnel.Policy, m ...runnel.Middleware) *runnel.Stream[Order] {
	s := runnel.NewStream(runnel.New("shop", nil), "orders", customer, nil)
	s.Process("p", fn, &runnel.ProcessorOptions{OnError: policy, Middleware: m})
	return s
}

// refuse is a function that refuses orders below zero.
var refuse = runnel.Each(func(_ context.Context, _ *runnel.Event, o Order) error {
	if o.Amount < 0 {
		return errRefund
	}
	return nil
})

// inBatches takes all events that are there and fails those below zero.
func inBatches(seen *[][]int) runnel.ProcessFunc[Order] {
	return runnel.EachBatch(10, 0, func(_ context.Context, events []*runnel.Event, orders []Order) error {
		var amounts []int
		var failed []*runnel.Event
		for i, o := range orders {
			amounts = append(amounts, o.Amount)
			if o.Amount < 0 {
				failed = append(failed, events[i])
			}
		}
		*seen = append(*seen, amounts)
		if failed == nil {
			return nil
		}
		return runnel.FailedEvents(errRefund, failed...)
	})
}

func wantAcked(t *testing.T, got *runneltest.Result, want ...string) {
	t.Helper()
	if !slices.Equal(got.Acked, want) {
		t.Errorf("acked %v, want %v; %+v", got.Acked, want, got)
	}
}

// wantSeen compares the batches that the function was called with.
func wantSeen(t *testing.T, got, want [][]int) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("called with %v, want %v", got, want)
	}
}

// example stands in for a *testing.T in examples.
type example struct{ testing.TB }

func (example) Helper()                  {}
func (example) Context() context.Context { return context.Background() }

// process runs the processor "p" and prints what it acked.
func process(s *runnel.Stream[Order], orders ...Order) *runneltest.Result {
	got := runneltest.Process(example{}, s, "p", orders...)
	fmt.Println("acked", got.Acked)
	return got
}

func letters(got *runneltest.Result, dead *runnel.Stream[middleware.Dead]) []middleware.Dead {
	return runneltest.Sent(example{}, got, dead)
}
