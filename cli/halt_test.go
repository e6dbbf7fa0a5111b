package cli

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/runnel-go/runnel"
)

// At which event a worker halted is told by the worker, and by status and check until the event is
// acked; each names the command that passes it over, and that does.
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
	for range 2 { // the second time another worker has halted there
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
