package cli

import (
	"context"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
)

// registered runs the processor printer once.
func (s *shop) registered() {
	s.t.Helper()
	handled := s.handled()
	s.sends(order{Customer: "ada"})
	worker := s.start("worker")
	receive(s.t, handled, "event")
	s.run("processor", "rm", "--yes", "orders/printer").want(s.t, 1, "", "stop it first")
	worker.stop().want(s.t, 0, "", "worker stopped")
}

func TestProcessorRm(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 2, MaxLen: 3})
	s.registered()
	s.sends(order{Customer: "ada"}, order{Customer: "ada"}, order{Customer: "ada"})
	if err := s.orders.Send(t.Context(), order{Customer: "ada"}); err == nil {
		t.Error("the stream is not full")
	}
	s.run("processor", "rm", "--yes", "orders/print").want(t, 1, "", "printer")
	s.run("processor", "rm", "--yes", "orders").want(t, 2, "", "STREAM/PROCESSOR")
	s.run("processor", "rm", "orders/printer").want(t, 2, "", "3 events that it has not processed")
	if got := printed[admin.RemovedProcessor](s, "processor", "rm", "--yes", "orders/printer"); got != (admin.RemovedProcessor{Stream: "orders", Processor: "printer", Lag: 3}) {
		t.Errorf("%+v", got)
	}
	left, err := s.rdb.Keys(context.Background(), "*printer*").Result()
	if err != nil || len(left) != 0 {
		t.Errorf("left: %q, %v", left, err)
	}
	s.run("processor", "rm", "--yes", "orders/printer").want(t, 1, "", "printer")
}

func TestProcessorRmOfOneThatHasDoneAll(t *testing.T) {
	s := newShop(t, nil)
	s.registered()
	s.run("pause", "orders/printer").want(t, 0, "pause of", "")
	s.run("processor", "rm", "--yes", "orders/printer").want(t, 0, "orders/printer removed; 0 events unprocessed", "")
	if left := s.ruled(); len(left) != 0 {
		t.Errorf("rules after that: %+v", left)
	}
}
