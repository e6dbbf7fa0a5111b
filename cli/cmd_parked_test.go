package cli

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
)

func TestParkedLs(t *testing.T) {
	s, ada, bob := two(t, 4)
	ada.park("ada")
	bob.park("")
	id := eventID(0, ada.entries[0].ID)
	s.untyped("parked", "ls", "orders/printer").matches(t,
		`^ID +KEY +ATTEMPTS +STATE +LAST FAILURE +ERROR\n`,
		`(?m)^`+id+` +ada +2 +waits 1h0m0s|59m\d+s +\S+ ago +no ink$`,
		`(?m)^`+eventID(1, bob.entries[1].ID)+` +- +0 +behind +- +-$`)
	all := parse[[]admin.ParkedEvent](t, s.run("parked", "ls", "orders/printer", "--output", "json"))
	if len(all) != 4 || all[0].Event != eventID(0, ada.entries[0].ID) || all[0].Key != "ada" || all[0].State != "waiting" || all[0].Error != "no\nink" || all[3].State != "behind" {
		t.Errorf("got %+v", all)
	}
	for flags, want := range map[string]int{
		"--key ada": 2, "--partition 1": 2, "--limit 3": 3, "--id " + id: 1, "--id " + eventID(0, ada.entries[1].ID): 1, "--error INK": 2, "--key=": 2,
		"--key ada --partition 1": 0,
	} {
		args := append([]string{"parked", "ls", "orders/printer", "--output", "json"}, strings.Fields(flags)...)
		if got := parse[[]admin.ParkedEvent](t, s.untyped(args...)); len(got) != want {
			t.Errorf("%s: got %+v, want %d", flags, got, want)
		}
	}
}

func TestParkedRetryAndDrop(t *testing.T) {
	s, ada, bob := two(t, 6)
	ada.park("ada")
	bob.park("bob")
	id := eventID(0, ada.entries[0].ID)
	s.untyped("parked", "retry", "orders/printer", "--key", "ada").want(t, 0, id+"\n1 event due now\n", "")
	states := printed[[]admin.ParkedEvent](s, "parked", "ls", "orders/printer")
	if states[0].State != "due" || states[1].State != "waiting" {
		t.Errorf("got %+v", states)
	}
	s.untyped("parked", "retry", "orders/printer", "--id", eventID(1, bob.entries[1].ID)).want(t, 0, "0 events due now\n", "")

	s.untyped("parked", "drop", "--yes", "orders/printer").want(t, 2, "", "say --all")
	got := parse[changedEvents](t, s.run("parked", "drop", "--yes", "orders/printer", "--id", id, "--output", "json"))
	if len(got.Events) != 1 || got.Events[0] != id || got.Stream != "orders" || got.Processor != "printer" {
		t.Errorf("got %+v", got)
	}
	s.untyped("parked", "drop", "--yes", "orders/printer", "--limit", "1").want(t, 0, eventID(1, bob.entries[0].ID)+"\n1 event dropped\n", "")
	s.untyped("parked", "drop", "--yes", "orders/printer", "--all").want(t, 0, "4 events dropped\n", "")
	p := s.processor()
	if p.Totals.Parked != 0 || p.Totals.Dead != 0 || p.Totals.Pending != 0 {
		t.Errorf("left %+v", p.Totals)
	}
}

// An event that would wait for an hour runs at once, and a dropped one never.
func TestParkedRetryReachesTheWorker(t *testing.T) {
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
		return printed[[]admin.ParkedEvent](s, "parked", "ls", "orders/printer")
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
