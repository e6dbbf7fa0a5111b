package cli

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/inspect"
)

func TestPauseListResume(t *testing.T) {
	s := owned(t, 2)
	s.untyped("rules", "ls").want(t, 0, "nothing is paused, blocked or quarantined\n", "")
	s.run("pause", "orders/printer", "--why", "no paper", "--who", "ada").want(t, 0, "pause of processor:orders/printer by ada: no paper\n", "")
	s.untyped("pause", "orders/printer", "--partition", "1", "--for", "10m", "--who", "bob").want(t, 0, "pause of partition:orders/printer/1 by bob until ", "")
	s.untyped("block", "orders", "--as-admin", "--who", "root", "--wait").want(t, 0, "block of stream:orders by root; nothing runs any more\n", "")

	list := parse[[]inspect.RuleState](t, s.run("rules", "ls", "--output", "json"))
	if len(list) != 3 || list[0].Kind != "block" || list[0].Scope != "stream:orders" || list[1].Until == nil || list[2].Why != "no paper" || time.Since(list[2].At) > time.Minute {
		t.Errorf("%+v", list)
	}
	text := s.untyped("rules", "ls")
	for _, want := range []string{"KIND   SCOPE", "block  stream:orders               root  20", "bob", "Z  until removed  ", "no paper"} {
		text.want(t, 0, want, "")
	}

	for i, want := range []string{"unblock orders --as-admin", "resume orders/printer --partition 1", "resume orders/printer"} {
		if list[i].Command != want || list[i].Absent {
			t.Errorf("%+v, want that it ends with %q", list[i], want)
		}
	}
	r := s.untyped("resume", "orders/printer")
	r.want(t, 0, "the pause of processor:orders/printer is removed\nstill in force: block of stream:orders by root\n", "")
	if !strings.Contains(r.out, "still in force: pause of partition:orders/printer/1 by bob") {
		t.Error(r.out)
	}
	s.untyped("resume", "orders/printer").want(t, 0, "there was no pause of processor:orders/printer\n", "")
	changed := printed[changedRule](s, "unblock", "orders", "--as-admin")
	if !changed.Was || changed.Kind != "block" || changed.Scope != "stream:orders" || changed.Generation == 0 || len(changed.Held) != 1 {
		t.Errorf("%+v", changed)
	}
	changed = parse[changedRule](t, s.untyped("pause", "--all", "--output", "json", "--wait"))
	if changed.Was || changed.Scope != "app" || !strings.Contains(changed.Who, "@") || !changed.Waited || changed.Until != nil {
		t.Errorf("%+v", changed)
	}
}

func TestRulesThatAreMistakes(t *testing.T) {
	for _, tt := range []struct{ args, err string }{
		{"pause", "of what? say STREAM, STREAM/PROCESSOR, or --all"},
		{"pause orders --all", "--all is the whole app"},
		{"pause --all --partition 1", "--all is the whole app"},
		{"pause orders --partition 1", "--partition is of a processor"},
		{"pause orders/printer --partition -1", "partition -1 is negative"},
		{"pause orders printer", `unexpected argument "printer"`},
		{"pause orders/printer/3", `"printer/3" is no name of a processor`},
		{"pause orders --for 1ns", "--for 1ns is too short"},
		{"pause orders --for never", `--for "never" is no duration, such as 10s`},
		{"block orders", "say --as-admin if you mean it"},
		{"unblock orders", "say --as-admin if you mean it"},
		{"resume", "of what?"},
		{"resume orders --wait", "unknown flag --wait"},
		{"rules", "a command is needed: ls"},
		{"rules ls orders", `unexpected argument "orders"`},
		{"quarantine release orders/printer", "to end a pause use resume"},
	} {
		run(t.Context(), newShopApp(), "", strings.Fields(tt.args)...).want(t, 2, "", tt.err)
	}
}

// An unknown name may be a typo: to pause it takes --yet.
func TestPauseOfWhatIsNotThereYet(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 2})
	s.untyped("pause", "oders").want(t, 1, "", `has no stream "oders"; it has none; a stream is there once its app has sent to it or run a worker; --yet holds it back from its start`)
	s.untyped("pause", "oders", "--yet").want(t, 0, "pause of stream:oders", "")
	s.untyped("rules", "ls").want(t, 0, "stream:oders (not there)", "")
	s.send(1)
	s.untyped("pause", "orders/Printer").want(t, 1, "", `stream orders has no processor "Printer"; it has none; a processor is there once a worker has run it; --yet holds it back from its start`)
	s.untyped("pause", "orders/printer", "--wait", "--yet").want(t, 0, "nothing runs any more", "")
	handled := s.handled()
	w := s.start("worker")
	eventually(t, "the worker is ready", func() bool { return s.app.Ready() == nil })
	s.untyped("pause", "orders/printer", "--partition", "2").want(t, 1, "", "stream orders has partitions 0 to 1, not 2")
	if len(handled) != 0 {
		t.Error("a worker that was started during a pause processed an event")
	}
	s.untyped("resume", "orders/printer").want(t, 0, "removed", "")
	receive(t, handled, "event")
	w.stop().want(t, 0, "", "partitions paused")
}

// --wait returns after the running function. Meanwhile status shows what is held back.
func TestPauseWaitsForWhatRuns(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 2})
	begun, finish := make(chan struct{}, 10), make(chan struct{})
	s.orders.Process("printer", runnel.Each(func(context.Context, *runnel.Event, order) error {
		begun <- struct{}{}
		<-finish
		return nil
	}), nil)
	w := s.start("worker")
	s.send(8)
	receive(t, begun, "iteration")
	s.untyped("pause", "orders/printer", "--who", "ada").want(t, 0, "pause", "")
	s.untyped("block", "orders/printer", "--partition", "1", "--as-admin", "--who", "root").want(t, 0, "block", "")
	waited := make(chan result)
	go func() { waited <- s.untyped("pause", "orders/printer", "--wait", "--output", "json") }()
	p := s.processor()
	if p.Partitions[0].Held != "pause" || p.Partitions[1].Held != "block" {
		t.Errorf("%+v", p.Partitions)
	}
	status := s.untyped("status", "orders")
	for _, want := range []string{"pause of processor:orders/printer by ", "block of partition:orders/printer/1 by root since ", "partitions 0 are paused\n", "partitions 1 are blocked\n"} {
		status.want(t, 0, want, "")
	}
	select {
	case r := <-waited:
		t.Fatalf("--wait returned while a function runs: %+v", r)
	default:
	}
	running := len(begun)
	close(finish)
	if changed := parse[changedRule](t, receive(t, waited, "end of --wait")); !changed.Waited || !changed.Was {
		t.Errorf("%+v", changed)
	}
	after := len(begun)
	if after > running+1 { // the other partition may have begun its first one
		t.Errorf("%d functions have begun since the pause", after-running)
	}
	s.untyped("resume", "orders/printer").want(t, 0, "removed", "")
	s.untyped("unblock", "orders/printer", "--partition", "1", "--as-admin").want(t, 0, "removed", "")
	eventually(t, "everything is processed", func() bool { return s.processor().Totals.Lag == 0 })
	w.stop().want(t, 0, "", "partitions resumed")
}

func TestParallelResumes(t *testing.T) {
	s := owned(t, 1)
	s.untyped("pause", "orders").want(t, 0, "pause", "")
	rules := admin.New(s.orders.App())
	var wg sync.WaitGroup
	errs := make([]error, 9)
	for i := range errs {
		wg.Go(func() { errs[i] = rules.Resume(t.Context(), admin.StreamScope("orders")) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	s.untyped("resume", "orders").want(t, 0, "there was no pause", "")
	s.untyped("rules", "ls").want(t, 0, "nothing is paused", "")
}
