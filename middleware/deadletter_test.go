package middleware_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/middleware"
	"github.com/runnel-go/runnel/runneltest"
)

// buried declares a stream with a processor "p" and its dead letters.
func buried(fn runnel.ProcessFunc[Order], policy runnel.Policy) (*runnel.Stream[Order], *runnel.Stream[middleware.Dead]) {
	s := runnel.NewStream(runnel.New("shop", nil), "orders", customer, nil)
	dead := middleware.DeadLetters(s)
	s.Process("p", fn, &runnel.ProcessorOptions{OnError: policy, Grace: time.Second, Middleware: []runnel.Middleware{middleware.DeadLetter(dead)}})
	return s, dead
}

func TestDeadLetterSaysEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dead := buried(refuse, runnel.Halt)
		got := runneltest.Events(t, s, "p").Partition(3).
			Outgoing(runnel.Outgoing[Order]{Record: Order{"ada", -1}, Key: "k", Headers: map[string]string{"trace": "x"}}).
			Records(Order{"bob", 1}).Run()
		wantAcked(t, got, "1-0", "2-0")
		sent := runneltest.Sent(t, got, dead)
		if got.Err != nil || len(sent) != 1 {
			t.Fatalf("%+v sent %+v", got, sent)
		}
		d := sent[0]
		if d.Stream != "orders" || d.Processor != "p" || d.Partition != 3 || d.ID != "1-0" || d.Key != "k" || d.Attempt != 1 ||
			d.Error != "refund" || d.Headers["trace"] != "x" || !d.FailedAt.Equal(time.Now()) {
			t.Errorf("dead letter %+v", d)
		}
		var back Order
		if err := codec.MsgPack.Decode(d.Fields["data"], &back); err != nil || back != (Order{"ada", -1}) {
			t.Errorf("the record in it: %+v, %v", back, err)
		}
	})
}

func TestDeadLetterTakesOnlyWhatFailed(t *testing.T) {
	var seen [][]int
	s, dead := buried(inBatches(&seen), runnel.Halt)
	got := runneltest.Process(t, s, "p", Order{"a", 1}, Order{"a", -2}, Order{"a", 3}, Order{"a", -4})
	wantAcked(t, got, "1-0", "2-0", "3-0", "4-0")
	if sent := runneltest.Sent(t, got, dead); len(sent) != 2 || sent[0].ID != "2-0" || sent[1].ID != "4-0" {
		t.Errorf("sent %+v", sent)
	}
}

func TestDeadLetterOfWhatCannotBeDecodedAndOfPanics(t *testing.T) {
	s, dead := buried(runnel.Each(func(context.Context, *runnel.Event, Order) error { panic("oh") }), runnel.Halt)
	got := runneltest.Events(t, s, "p").Raw(map[string]string{"data": "\xc1\xff"}).Records(Order{"a", 1}).Run()
	wantAcked(t, got, "1-0", "2-0")
	sent := runneltest.Sent(t, got, dead)
	if len(sent) != 2 || string(sent[0].Fields["data"]) != "\xc1\xff" || !strings.Contains(sent[0].Error, "decode event 0/1-0") ||
		!strings.Contains(sent[1].Error, "panic: oh") {
		t.Errorf("sent %+v", sent)
	}
}

func TestAFailedDeadLetterAcksNothing(t *testing.T) {
	broken := errors.New("broken")
	for _, policy := range []runnel.Policy{runnel.Halt, runnel.Quarantine} {
		s, _ := buried(refuse, policy)
		got := runneltest.Events(t, s, "p").Records(Order{"a", 1}, Order{"a", -1}, Order{"a", 2}).FailSends(broken).Run()
		wantAcked(t, got, "1-0")
		err := errors.Join(got.Err, got.Quarantined)
		if !errors.Is(err, broken) || !errors.Is(err, errRefund) || !strings.Contains(err.Error(), "middleware.DeadLetter") {
			t.Errorf("%v: ended with %v", policy, err)
		}
	}
}

func TestDeadLetterLeavesAloneWhatEndsWithTheOwnership(t *testing.T) {
	for name, end := range map[string]func(*runneltest.Script[Order]) *runneltest.Script[Order]{
		"release": (*runneltest.Script[Order]).Release, "shutdown": (*runneltest.Script[Order]).Shutdown, "loss": (*runneltest.Script[Order]).Lose,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, dead := buried(runnel.Each(func(ctx context.Context, _ *runnel.Event, _ Order) error {
					<-ctx.Done()
					return ctx.Err()
				}), runnel.Halt)
				got := end(runneltest.Events(t, s, "p").Records(Order{"a", 1})).Run()
				wantAcked(t, got)
				if sent := runneltest.Sent(t, got, dead); got.Err != nil || sent != nil {
					t.Errorf("%+v sent %+v", got, sent)
				}
			})
		})
	}
}

func TestDeadLetterDoesNotHideNotConsumed(t *testing.T) {
	again := false
	s := runnel.NewStream(runnel.New("shop", nil), "orders", customer, nil)
	dead := middleware.DeadLetters(s)
	s.Process("p", func(_ context.Context, events *runnel.Events[Order]) error {
		if again {
			return nil
		}
		again = true
		for range events.Records() {
			return errRefund
		}
		return nil
	}, &runnel.ProcessorOptions{Middleware: []runnel.Middleware{middleware.DeadLetter(dead), middleware.RetryInPlace(2, 0)}})
	got := runneltest.Process(t, s, "p", Order{"a", 1})
	wantAcked(t, got)
	if !errors.Is(got.Err, runnel.ErrNotConsumed) || runneltest.Sent(t, got, dead) != nil {
		t.Errorf("%+v", got)
	}
}
