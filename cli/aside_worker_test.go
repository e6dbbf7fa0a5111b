package cli

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
)

// failing is a processor that fails while broken holds, and passes on what it
// was called with.
func (s *shop) failing(broken *atomic.Bool, opts *runnel.ProcessorOptions) <-chan string {
	calls := make(chan string, 1000)
	s.orders.Process("printer", runnel.Each(func(_ context.Context, _ *runnel.Event, o order) error {
		calls <- o.Customer
		if broken.Load() {
			return errors.New("no ink")
		}
		return nil
	}), opts)
	return calls
}

// What died comes back with a replay, while the worker runs.
func TestReplayReachesTheWorker(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 2, KeyField: "customer"})
	var broken atomic.Bool
	broken.Store(true)
	calls := s.failing(&broken, &runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 1}})
	w := s.start("worker")
	s.send(3)
	for range 3 {
		receive(t, calls, "call")
	}
	eventually(t, "three dead letters", func() bool { return s.processor().Totals.Dead == 3 })
	letters := told[[]admin.DeadLetter](s, "dead", "ls", "orders/printer")
	for _, d := range letters {
		if d.Attempts != 1 || d.Reason != "failed" || d.Error != "no ink" || !strings.HasPrefix(d.Key, "c") || d.First == nil {
			t.Errorf("dead letter %+v", d)
		}
	}
	broken.Store(false)
	s.untyped("dead", "replay", "--yes", "orders/printer", "--key", "c1").want(t, 0, "1 dead letter replayed", "")
	if got := receive(t, calls, "call"); got != "c1" {
		t.Errorf("got %s", got)
	}
	s.untyped("dead", "replay", "--yes", "orders/printer").want(t, 0, "2 dead letters replayed", "")
	got := map[string]bool{receive(t, calls, "call"): true, receive(t, calls, "call"): true}
	eventually(t, "all is processed", func() bool { p := s.processor().Totals; return p.Lag == 0 && p.Dead == 0 && p.Parked == 0 })
	w.stop().want(t, 0, "", "worker stopped")
	if !got["c0"] || !got["c2"] || len(calls) != 0 {
		t.Errorf("got %v and %d more", got, len(calls))
	}
}

// An event that would wait for an hour runs at once, and one that is dropped never.
func TestRetryNowReachesTheWorker(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 1, KeyField: "customer"})
	var broken atomic.Bool
	broken.Store(true)
	calls := s.failing(&broken, &runnel.ProcessorOptions{Retry: &runnel.Retry{
		Max: 9, Order: runnel.OrderNone, MinBackoff: time.Hour, MaxBackoff: time.Hour,
	}})
	w := s.start("worker")
	s.send(2)
	receive(t, calls, "call")
	receive(t, calls, "call")
	waiting := func() []admin.ParkedEvent {
		return told[[]admin.ParkedEvent](s, "parked", "ls", "orders/printer")
	}
	eventually(t, "both wait", func() bool {
		all := waiting()
		return len(all) == 2 && all[0].State == "waiting" && all[1].State == "waiting"
	})
	if all := waiting(); all[0].Attempts != 1 || all[0].Error != "no ink" || all[0].Key != "c0" || all[0].In < 40*60_000 {
		t.Errorf("got %+v", all[0])
	}
	broken.Store(false)
	s.untyped("parked", "drop", "--yes", "orders/printer", "--key", "c0").want(t, 0, "1 event dropped", "")
	s.untyped("parked", "retry", "orders/printer").want(t, 0, "1 event due now", "")
	if got := receive(t, calls, "call"); got != "c1" {
		t.Errorf("got %s", got)
	}
	eventually(t, "nothing waits", func() bool { return len(waiting()) == 0 })
	w.stop().want(t, 0, "", "worker stopped")
	if p := s.processor().Totals; len(calls) != 0 || p.Lag != 0 || p.Dead != 0 {
		t.Errorf("%d calls more, %+v", len(calls), p)
	}
}

// A quarantine outlives its worker, and ends where it began, or behind that.
func TestResumeReachesTheWorker(t *testing.T) {
	for _, skip := range []bool{false, true} {
		s := newShop(t, &runnel.StreamOptions{Partitions: 1, KeyField: "customer"})
		var broken atomic.Bool
		broken.Store(true)
		opts := &runnel.ProcessorOptions{OnError: runnel.Quarantine}
		calls := s.failing(&broken, opts)
		w := s.start("worker")
		s.send(2)
		receive(t, calls, "call")
		eventually(t, "the quarantine", func() bool { return s.processor().Totals.Quarantined == 1 })
		w.stop().want(t, 0, "", "partition quarantined")
		q := s.processor().Partitions[0].Quarantine
		if !strings.Contains(q.Reason, "no ink") || q.Event == "" || q.Worker == "" || time.Since(q.At) > time.Hour {
			t.Errorf("quarantine %+v", q)
		}

		next := shopAt(t, s.url, s.rdb, &runnel.StreamOptions{Partitions: 1, KeyField: "customer"})
		calls = next.failing(&broken, opts)
		w = next.start("worker")
		eventually(t, "the next owner", func() bool { return next.app.Ready() == nil })
		broken.Store(false)
		args := []string{"quarantine", "release", "orders/printer", "--partition", "0"}
		want := []string{"c0", "c1"}
		if skip {
			args, want = append(args, "--skip", "--yes"), want[1:]
		}
		next.untyped(args...).want(t, 0, "released", "")
		for _, customer := range want {
			if got := receive(t, calls, "call"); got != customer {
				t.Errorf("skip %v: got %s, want %s", skip, got, customer)
			}
		}
		eventually(t, "all is acked", func() bool { p := next.processor().Totals; return p.Lag == 0 && p.Quarantined == 0 })
		w.stop().want(t, 0, "", "worker stopped")
		if len(calls) != 0 {
			t.Errorf("skip %v: %d calls more", skip, len(calls))
		}
	}
}
