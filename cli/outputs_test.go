package cli

import (
	"context"
	"fmt"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/keys"
)

var tagged = keys.Keys{App: "shop", Layout: keys.Cluster}

// A billed shop has a processor that emits each order of partition 0 to partition 1 of bills, where there is no stream but
// something else. Three outputs wait in its outbox, and no worker runs any more.
func billed(t *testing.T) *shop {
	t.Helper()
	t.Setenv("RUNNEL_KEY_LAYOUT", "cluster")
	at := func(n int) *runnel.StreamOptions {
		return &runnel.StreamOptions{Partitions: 2, KeyField: "customer", Partitioner: &runnel.Partitioner{Name: fmt.Sprint("at", n), Func: func(string, int) int { return n }}}
	}
	s := newShop(t, at(0))
	bills := runnel.NewStream(s.app, "bills", func(o order) string { return o.Customer }, at(1))
	s.orders.Process("biller", runnel.Each(func(ctx context.Context, _ *runnel.Event, o order) error { return bills.Emit(ctx, o) }), &runnel.ProcessorOptions{Atomic: true})
	worker := s.start("worker")
	eventually(t, "it is owned", func() bool {
		return s.untyped("processor", "info", "orders/biller").code == 0 && s.stateOf("biller").Totals.Owned == 2
	})
	s.rdb.Set(t.Context(), tagged.Partition("bills", 1), "no stream", 0)
	s.sends(order{"ada", 1}, order{"bob", 2}, order{"ada", 3})
	eventually(t, "the outputs wait", func() bool { p := s.stateOf("biller"); return p.Totals.Outputs == 3 && p.Totals.Lag == 0 })
	s.untyped("doctor").matchesNot(t, "outboxes")
	worker.stop().want(t, 0, "", "worker stopped")
	return s
}

// Every command tells that outputs wait, and only then.
func TestOutputsThatWait(t *testing.T) {
	s := billed(t)
	for _, columns := range []struct {
		args []string
		row  string
	}{
		{[]string{"status"}, `(?m)^PROCESSOR +.* DEAD +OUT +STATE\n(.*\n)?orders/biller +0 .* 0 +3 +2 no owner$`},
		{[]string{"status", "orders"}, `(?m)^PARTITION +.* LOST +OUT +ACKED TO.*\n0 .* 0 +3 +\d+-\d+ `},
		{[]string{"processor", "info", "orders/biller"}, `(?m)^total +0 owned .* 3$`},
		{[]string{"processor", "ls"}, `(?m)^PROCESSOR .* LOST +OUT +HELD.*\n(.*\n)?orders/biller .* 0 +3 +0 +0$`},
	} {
		s.untyped(columns.args...).matches(t, columns.row)
	}
	if p := s.stateOf("biller"); p.Outboxes[0] != 3 || len(p.Outboxes) != 1 {
		t.Errorf("outboxes: %v", p.Outboxes)
	}
	s.untyped("check", "orders/biller").want(t, 3, "3 outputs wait in outboxes: start a worker", "")
	s.untyped("doctor").want(t, 3, "stream orders: processor biller: 3 outputs wait in outboxes, and no worker runs it", "")

	s.rdb.Del(t.Context(), tagged.Partition("bills", 1))
	worker := s.start("worker")
	eventually(t, "they come", func() bool { return s.stateOf("biller").Totals.Outputs == 0 })
	worker.stop().want(t, 0, "", "worker stopped")
	for _, args := range [][]string{{"status"}, {"status", "orders"}, {"processor", "info", "orders/biller"}, {"processor", "ls"}, {"doctor"}} {
		s.untyped(args...).matchesNot(t, "OUT|outputs wait")
	}
}

// What a processor has committed comes before the processor, or its stream, is removed; or nothing is removed.
func TestRemovalOfWhatHasOutputs(t *testing.T) {
	for what, args := range map[string][]string{"a processor": {"processor", "rm", "orders/biller", "--yes"}, "a stream": {"stream", "rm", "orders", "--yes"}} {
		t.Run(what, func(t *testing.T) {
			s := billed(t)
			if what == "a stream" { // both refuse in the same place
				s.untyped(args...).want(t, 1, "", "3 committed outputs wait, and partition 1 of stream bills takes none")
				if p := s.stateOf("biller"); p.Totals.Outputs != 3 || p.Partitions[0].Length != 3 {
					t.Errorf("after it was refused: %+v", p.Totals)
				}
			}
			s.rdb.Del(t.Context(), tagged.Partition("bills", 1))
			s.untyped(args...).want(t, 0, "; 3 outputs brought away from outboxes\n", "")
			if n := s.rdb.XLen(t.Context(), tagged.Partition("bills", 1)).Val(); n != 3 {
				t.Errorf("%d came", n)
			}
			if left := s.rdb.Keys(t.Context(), "__out*").Val(); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}
