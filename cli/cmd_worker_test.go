package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
)

func TestWorkerDrains(t *testing.T) {
	s := newShop(t, nil)
	handled := s.handled()
	s.sends(order{Customer: "ada"})
	w := s.start("worker", "--processors", "orders/printer")
	if got := receive(t, handled, "event"); got != "ada" {
		t.Errorf("handled %s", got)
	}
	r := w.stop()
	r.want(t, 0, "", "partitions gained")
	if !regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} INFO  worker started app=shop worker=\S+ redis=`).MatchString(r.err) {
		t.Errorf("log:\n%s", r.err)
	}
}

func TestAWorkerWithNothingToRunSaysSo(t *testing.T) {
	s := newShop(t, nil)
	w := s.start("worker")
	eventually(t, "a warning", func() bool { return strings.Contains(w.err.String(), "WARN  nothing to run") })
	w.stop().want(t, 0, "", "worker stopped")
}

func TestWorkerLogsJSON(t *testing.T) {
	s := newShop(t, nil)
	handled := s.handled()
	s.sends(order{Customer: "ada"})
	w := s.start("--log-format", "json", "worker", "--log-level", "debug")
	receive(t, handled, "event")
	debug := false
	for l := range strings.Lines(w.stop().err) {
		var line struct{ Level, Msg, App string }
		if err := json.Unmarshal([]byte(l), &line); err != nil || line.App != "shop" || line.Msg == "" {
			t.Errorf("%q: %v", l, err)
		}
		debug = debug || line.Level == "DEBUG"
	}
	if !debug {
		t.Error("no line of level debug")
	}
}

func TestWorkerErrorsAreOneLine(t *testing.T) {
	s := newShop(t, nil)
	s.orders.Process("printer", func(_ context.Context, events *runnel.Events[order]) error {
		for range events.Records() {
			return errors.Join(errors.New("no paper"), errors.New("no ink"))
		}
		return nil
	}, nil)
	s.orders.Process("stamper", func(_ context.Context, events *runnel.Events[order]) error {
		for range events.Records() {
			panic("no stamp")
		}
		return nil
	}, nil)
	s.sends(order{Customer: "ada"})
	for name, want := range map[string]string{"printer": "no paper; no ink", "stamper": "panic: no stamp"} {
		r := s.run("worker", "--processors", name)
		r.want(t, 1, "", want)
		lines := strings.Split(strings.TrimSpace(r.err), "\n")
		last := lines[len(lines)-1]
		if !strings.Contains(last, want+"; mend what fails") || !strings.Contains(last, "stream orders partition") || !strings.Contains(lines[len(lines)-2], "worker stopped") {
			t.Errorf("%s: the last lines are\n%s", name, strings.Join(lines[len(lines)-2:], "\n"))
		}
	}
	s.run("worker", "--processors", "nope").want(t, 1, "", `no processor "nope"; there are orders/printer, orders/stamper`)
}

// A network error of a user's function is not blamed on Redis.
func TestWorkerReportsAForeignNetworkError(t *testing.T) {
	s := newShop(t, nil)
	s.orders.Process("printer", func(_ context.Context, events *runnel.Events[order]) error {
		for range events.Records() {
			return fmt.Errorf("call the printer: %w", &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("refused")})
		}
		return nil
	}, nil)
	s.sends(order{Customer: "ada"})
	r := s.run("worker")
	r.want(t, 1, "", "call the printer: dial tcp: refused")
	if strings.Contains(r.err, "no Redis") {
		t.Errorf("blames the server: %s", r.err)
	}
}

// --processors takes several names, and may stand before the command.
func TestWorkerRunsTheProcessorsThatAreNamed(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 1})
	seen := make(chan string, 10)
	for _, name := range []string{"a", "b", "c"} {
		s.orders.Process(name, runnel.Each(func(context.Context, *runnel.Event, order) error { seen <- name; return nil }), nil)
	}
	s.send(1)
	w := s.start("--processors", "orders/a, c", "worker")
	got := map[string]bool{receive(t, seen, "event"): true, receive(t, seen, "event"): true}
	w.stop().want(t, 0, "", "worker stopped")
	if !got["a"] || !got["c"] || len(seen) != 0 {
		t.Errorf("ran %v and %d more", got, len(seen))
	}
}

// A worker logs partitions gained and released, leadership, and failures.
func TestWorkerLogsWhatHappens(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 1})
	led := make(chan struct{})
	s.app.Task("lead", func(context.Context) error { close(led); panic("no crown") }, &runnel.TaskOptions{Leader: true})
	failed := make(chan struct{}, 10)
	s.orders.Process("printer", runnel.Each(func(context.Context, *runnel.Event, order) error {
		failed <- struct{}{}
		panic("no paper")
	}), &runnel.ProcessorOptions{OnError: runnel.Ignore})
	s.send(1)
	w := s.start("worker")
	receive(t, led, "leader")
	receive(t, failed, "failure")
	r := w.stop()
	for _, want := range []string{
		`INFO  leadership gained app=shop worker=\S+\n`,
		`INFO  partitions gained app=shop worker=\S+ stream=orders processor=printer .*partitions=0`,
		`INFO  partitions released app=shop worker=\S+ stream=orders processor=printer .*partitions=`,
		`WARN  error ignored app=shop worker=\S+ stream=orders processor=printer .*partition=\d .*panic: no paper`,
		`ERROR task failed app=shop worker=\S+ task=lead .*panic: no crown`,
	} {
		if !regexp.MustCompile(want).MatchString(r.err) {
			t.Errorf("no %s in\n%s", want, r.err)
		}
	}
}

// The worker, and until the event is acked status and check, name the event of a halt and the
// command that passes it over.
func TestTheEventOfAHaltIsShownUntilItIsPassedOver(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 2, KeyField: "customer"})
	done := make(chan string, 100)
	s.orders.Process("printer", func(_ context.Context, events *runnel.Events[order]) error {
		for o := range events.Records() {
			if o.Customer == "bad" {
				return errors.New("no ink")
			}
			done <- o.Customer
		}
		return nil
	}, nil)
	s.sends(order{Customer: "bad"})
	r := receive(t, s.start("worker").done, "the halt")
	partition := "0"
	if n := s.rdb.XLen(t.Context(), "__strm:shop.orders.1").Val(); n > 0 {
		partition = "1"
	}
	event := partition + "/" + s.rdb.XRange(t.Context(), "__strm:shop.orders."+partition, "-", "+").Val()[0].ID
	way := "processor reset orders/printer --to " + event
	if r.code != 1 || !strings.Contains(r.err, "event "+event+": no ink; ") || !strings.Contains(r.err, way) {
		t.Errorf("worker: %+v, want %q", r, way)
	}
	for range 2 { // the second time after another worker's halt
		for command, code := range map[string]int{"status": 0, "check": 3} {
			if r := s.untyped(command); r.code != code || !strings.Contains(r.out, "halted at event "+event+" at ") || !strings.Contains(r.out, "no ink") || !strings.Contains(r.out, way) {
				t.Errorf("%s: %+v", command, r)
			}
		}
		if v := s.checked(3); v.Findings[len(v.Findings)-1].What != "halt" || v.Processors[0].Totals.Halted != 1 {
			t.Errorf("%+v", v)
		}
		if p := s.processor(); p.Partitions[p.Totals.Halted-1].Halt == nil && p.Partitions[p.Totals.Halted].Halt == nil {
			t.Errorf("%+v", p)
		}
		receive(t, s.start("worker").done, "the next halt")
	}
	s.untyped(append(strings.Fields(way), "--yes")...).want(t, 0, partition, "")
	s.sends(order{Customer: "good"})
	w := s.start("worker")
	receive(t, done, "the event behind it")
	w.stop().want(t, 0, "", "worker stopped")
	if r := s.untyped("status", "orders"); strings.Contains(r.out, "halted") || s.processor().Totals.Halted != 0 {
		t.Errorf("%+v", r)
	}
}

// Status and check tell of a halt at no event, as where a row ends, until another owner comes.
func TestAHaltAtARowIsShownUntilAWorkerGoesOn(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 1, KeyField: "customer"})
	rows := runnel.NewTable[int](s.orders, "rows", &runnel.TableOptions{TTL: time.Millisecond})
	var mended atomic.Bool
	done := make(chan string, 100)
	rows.OnExpire(func(_ context.Context, key string, _ int) error {
		if !mended.Load() {
			return errors.New("no ink")
		}
		done <- key
		return nil
	})
	s.orders.Process("printer", runnel.Each(func(ctx context.Context, _ *runnel.Event, o order) error {
		rows.Rows(ctx).Set(o.Customer, 1)
		return nil
	}), &runnel.ProcessorOptions{Tables: []runnel.State{rows}})
	s.sends(order{Customer: "ada"})
	if r := receive(t, s.start("worker").done, "the halt"); r.code != 1 || !strings.Contains(r.err, `table rows: end of the row of key "ada": no ink`) {
		t.Errorf("worker: %+v", r)
	}
	for command, code := range map[string]int{"status": 0, "check": 3} {
		r := s.untyped(command)
		if r.code != code || !strings.Contains(r.out, " halted at 2") || !strings.Contains(r.out, "no ink") || !strings.Contains(r.out, "mend what fails and start a worker") || strings.Contains(r.out, "processor reset") {
			t.Errorf("%s: %+v", command, r)
		}
	}
	mended.Store(true)
	w := s.start("worker")
	receive(t, done, "the end of the row")
	w.stop().want(t, 0, "", "worker stopped")
	if r := s.untyped("status", "orders"); strings.Contains(r.out, "halted") || s.processor().Totals.Halted != 0 {
		t.Errorf("%+v", r)
	}
}
