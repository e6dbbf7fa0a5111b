package cli

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
)

func TestQuarantineRelease(t *testing.T) {
	s, ada, bob := two(t, 2)
	for i, o := range []*owner{ada, bob} {
		reason := "event " + eventID(i, o.entries[0].ID) + ": no\nink" // which is shown apart
		o.must(o.c.Quarantine(t.Context(), o.place, o.tenure, store.Quarantine{Reason: reason, Event: o.entries[0].ID, Worker: "w1", At: 1767225600123}))
	}
	stop := printed[[]inspect.RuleState](s, "rules", "ls")
	if len(stop) != 2 || stop[1].Kind != "quarantine" || stop[1].Scope != "partition:orders/printer/1" || stop[1].Who != "w1" || stop[1].Why != "event "+stop[1].Event+": no\nink" ||
		stop[1].Event != eventID(1, bob.entries[0].ID) || stop[1].Command != "quarantine release orders/printer --partition 1" || stop[1].At.UnixMilli() != 1767225600123 {
		t.Errorf("%+v", stop)
	}
	s.untyped("rules", "ls").want(t, 0, "quarantine  partition:orders/printer/0  w1   2026-01-01T00:00:00Z  until released  at event "+eventID(0, ada.entries[0].ID)+": no ink  cli.test --app shop quarantine release orders/printer --partition 0\n", "")
	s.untyped("quarantine", "release", "orders/printer").want(t, 2, "", "which partition? say --partition N")
	s.untyped("quarantine", "release", "orders/printer", "--partition", "2").want(t, 1, "", "stream orders has no partition 2")
	s.untyped("quarantine", "release", "orders/other", "--partition", "0").want(t, 1, "", `no processor "other"; it has printer`)
	s.untyped("quarantine", "release", "returns/printer", "--partition", "0").want(t, 1, "", `no stream "returns"`)
	s.untyped("quarantine", "release", "orders/printer", "--partition", "0").want(t, 0, "orders/printer partition 0: released; it was quarantined for: event "+eventID(0, ada.entries[0].ID)+": no ink\n", "")
	s.untyped("quarantine", "release", "orders/printer", "--partition", "0").want(t, 1, "", "stream orders partition 0: processor printer: it is not quarantined")
	got := parse[admin.Released](t, s.run("quarantine", "release", "orders/printer", "--skip", "--yes", "--partition", "1", "--output", "json"))
	if want := (admin.Released{Stream: "orders", Processor: "printer", Partition: 1, Reason: stop[1].Why, Event: eventID(1, bob.entries[0].ID), At: time.UnixMilli(1767225600123).UTC(), Skipped: true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if text := releasedText(got); !strings.HasSuffix(text, ": released, event "+got.Event+" is passed over; it was quarantined for: no ink") {
		t.Error(text)
	}
	for i, skip := range []string{"", bob.entries[0].ID} {
		next := store.Claim{Executor: "bbbbbbbbbbbbbbbb", Number: 1}
		o := []*owner{ada, bob}[i]
		o.must(o.c.Unlock(t.Context(), o.place, o.tenure))
		o.must(o.c.Lock(t.Context(), o.place, next, time.Hour, 0))
		pos, err := o.c.Takeover(t.Context(), o.place, next, "", 0)
		o.must(err)
		if pos.Quarantine != nil || pos.Skip != skip {
			t.Errorf("partition %d: quarantine %v, skip %q", i, pos.Quarantine, pos.Skip)
		}
	}
}

func TestReleaseOfAQuarantineWithoutAnEvent(t *testing.T) {
	s, ada, _ := two(t, 2)
	ada.must(ada.c.Quarantine(t.Context(), ada.place, ada.tenure, store.Quarantine{Reason: "no database"}))
	s.untyped("quarantine", "release", "orders/printer", "--partition", "0", "--skip", "--yes").want(t, 1, "", "the quarantine names no event or row that could be skipped")
	s.untyped("quarantine", "release", "orders/printer", "--partition", "0").want(t, 0, "released", "")
	ada.must(ada.c.Quarantine(t.Context(), ada.place, ada.tenure, store.Quarantine{Reason: "no ink", Ending: store.EndName("open", "ada", 7)}))
	s.untyped("quarantine", "release", "orders/printer", "--partition", "0", "--skip", "--yes").want(t, 0, "orders/printer partition 0: released, the row stays without an end; it was quarantined for: no ink\n", "")
}

// A quarantine outlives its worker. After the release a worker begins at the event, or with --skip
// behind it.
func TestReleaseReachesTheWorker(t *testing.T) {
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
