package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
)

// owned is a shop with two partitions whose worker has handled some orders and
// stopped.
func owned(t *testing.T, n int) *shop {
	t.Helper()
	s := newShop(t, &runnel.StreamOptions{Partitions: 2, KeyField: "customer"})
	handled := s.handled()
	s.send(n)
	w := s.start("worker")
	for range n {
		receive(t, handled, "event")
	}
	w.stop().want(t, 0, "", "worker stopped")
	return s
}

func (s *shop) send(n int) {
	s.t.Helper()
	var records []order
	for i := range n {
		records = append(records, order{Customer: fmt.Sprint("c", i)})
	}
	s.sends(records...)
}

// processor is the state of the processor as `status` tells it.
func (s *shop) processor() inspect.ProcessorState {
	s.t.Helper()
	state := told[inspect.AppState](s, "status", "orders/printer")
	if len(state.Streams) != 1 || len(state.Streams[0].Processors) != 1 {
		s.t.Fatalf("%+v", state)
	}
	return state.Streams[0].Processors[0]
}

func TestStatusText(t *testing.T) {
	s := owned(t, 10)
	s.send(5)
	r := s.untyped("status", "orders")
	r.want(t, 0, "app shop, redis "+strings.TrimPrefix(s.url, "redis://")+", leader -\n", "")
	r.matches(t,
		`stream orders: 2 partitions, size 50000, codec msgpack, partitioner xxh64, 0 delayed\n`,
		`processor orders/printer: generation \d+, 0 members\n`,
		`PARTITION +OWNER +LEASE +EPOCH +PENDING +LAG +AGE +DELAYED +PARKED +DEAD +LOST +ACKED TO +END +STATE\n`,
		`0 +- +- +\d{13} +0 +\d +(-|\d+ms|\d+s) +0 +0 +0 +0 +\d+-\d+ +\d+-\d+ +no owner\n`,
		`total +0 owned +0 +5 +(\d+ms|\d+s) +0 +0 +0 +0 *\n`)
}

func TestStatusWhileAWorkerRuns(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 2})
	hold := make(chan struct{})
	begun := make(chan struct{}, 10)
	s.orders.Process("printer", func(ctx context.Context, events *runnel.Events[order]) error {
		for range events.Records() {
			begun <- struct{}{}
			<-hold
		}
		return nil
	}, nil)
	s.app.Task("lead", func(ctx context.Context) error { <-ctx.Done(); return nil }, &runnel.TaskOptions{Leader: true})
	w := s.start("worker")
	s.sends(order{}, order{}, order{})
	receive(t, begun, "iteration")
	eventually(t, "three events behind", func() bool {
		got := s.processor().Totals
		old := got.Age > 0
		got.Age = 0
		return old && got == inspect.Totals{Owned: 2, Pending: 3, Lag: 3, Length: 3}
	})
	p := s.processor()
	if len(p.Members) != 1 || !p.Members[0].Alive || len(p.Members[0].Assigned) != 2 || p.Members[0].HeartbeatLeft <= 0 || time.Since(p.Members[0].JoinedAt) > time.Minute {
		t.Fatalf("members %+v", p.Members)
	}
	for i, part := range p.Partitions {
		if part.Partition != i || part.Executor != p.Members[0].Executor || part.Worker != p.Members[0].Worker ||
			part.Group != "printer@"+part.Executor || part.Epoch == 0 || part.LockLeft <= 0 || part.Tenure == "" {
			t.Errorf("partition %d: %+v", i, part)
		}
	}
	r := s.untyped("status", "orders")
	for _, want := range []string{"leader " + p.Members[0].Worker + "\n", "expires in ", "1 member\n", "2 owned"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("no %q in\n%s", want, r.out)
		}
	}
	close(hold)
	// A worker that is stopped finishes its iteration, not what it has read ahead.
	eventually(t, "all is acked", func() bool { return s.processor().Totals.Lag == 0 })
	w.stop().want(t, 0, "", "worker stopped")
	if got := s.processor().Totals; got != (inspect.Totals{Length: 3}) {
		t.Errorf("after a clean end: %+v", got)
	}
}

func TestStatusWide(t *testing.T) {
	s := owned(t, 4)
	r := s.untyped("status", "orders/printer", "--output", "wide")
	r.want(t, 0, "EXECUTOR", "")
	r.matches(t,
		`PARTITION +OWNER +EXECUTOR +LEASE +EPOCH +PENDING +LAG +AGE +DELAYED +PARKED +RETRYING +DEAD +LOST +LENGTH +ACKED TO +END +GROUP +STATE\n`,
		`1 +- +- +- +\d{13} +0 +0 +- +0 +0 +0 +0 +0 +\d +\S+ +\S+ +printer@\S+ +no owner\n`)
}

func TestStatusAgainAndAgain(t *testing.T) {
	s := owned(t, 4)
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- Main(ctx, s.app, []string{"status", "--watch", "--every", "100ms", "--output", "json", "--redis-url", s.url}, nil, w, io.Discard)
		w.Close()
	}()
	states := json.NewDecoder(r)
	for range 3 {
		var state inspect.AppState
		if err := states.Decode(&state); err != nil || state.App != "shop" {
			t.Fatalf("%+v, %v", state, err)
		}
	}
	cancel()
	go io.Copy(io.Discard, r)
	if got := receive(t, code, "end of the command"); got != 0 {
		t.Errorf("exit code %d", got)
	}
	s.untyped("status", "--watch", "--every", "1ms").want(t, 2, "", "--every 1ms is below 100ms")
	s.untyped("status", "--every", "1s").want(t, 2, "", "--every goes with --watch")
}

func TestStatusOfWhatIsNotThere(t *testing.T) {
	s := newShop(t, nil)
	s.untyped("status").want(t, 0, "0 streams", "")
	s.untyped("status", "orders").want(t, 1, "", `no stream "orders"`)
	s.send(1)
	s.untyped("status", "orders").want(t, 0, "no processors", "")
	s.untyped("status", "orders/printer").want(t, 1, "", `no processor "printer"; it has none`)
	key := "__strm:shop.orders.0"
	s.rdb.Del(t.Context(), key)
	s.rdb.Set(t.Context(), key, "x", 0)
	if _, err := s.client().EnsureMeta(t.Context(), "orders", metaOf("printer")); err != nil {
		t.Fatal(err)
	}
	s.untyped("status", "orders").want(t, 0, "stream orders partition 0: processor printer: view: ", "")
}

// A slash alone is no way to leave the stream out.
func TestProcessorWithoutItsStream(t *testing.T) {
	for _, command := range []string{"status", "workers ls", "check", "top"} {
		run(t.Context(), newShopApp(), "", append(strings.Fields(command), "/printer")...).want(t, 2, "", `"/printer" names no stream`)
	}
}

func TestReset(t *testing.T) {
	s := owned(t, 20)
	before := s.processor()
	for _, tt := range []struct {
		to   string
		lag  int64
		want func(inspect.PartitionState) string
	}{
		{"start", 20, func(inspect.PartitionState) string { return "0-0" }},
		{"end", 0, func(p inspect.PartitionState) string { return p.End }},
		{"0", 20, func(inspect.PartitionState) string { return "0-0" }},
		{"99999999999999-7", 0, func(p inspect.PartitionState) string { return p.End }}, // never behind the end
	} {
		t.Run(tt.to, func(t *testing.T) {
			old := s.processor()
			moves := s.reset("--to", tt.to)
			if len(moves) != 2 {
				t.Fatalf("%+v", moves)
			}
			now := s.processor()
			for i, m := range moves {
				if m.Partition != i || m.Old != old.Partitions[i].Floor || m.New != tt.want(now.Partitions[i]) || m.New != now.Partitions[i].Floor {
					t.Errorf("%+v, before %+v, now %+v", m, old.Partitions[i], now.Partitions[i])
				}
			}
			if aged := now.Totals.Age > 0; aged != (tt.lag > 0) {
				t.Errorf("lag %d, age %d", tt.lag, now.Totals.Age)
			}
			now.Totals.Age = 0
			if now.Totals != (inspect.Totals{Lag: tt.lag, Length: before.Totals.Length}) {
				t.Errorf("totals %+v", now.Totals)
			}
		})
	}
}

// The next worker begins where the reset put the position.
func TestResetIsWhereTheNextWorkerBegins(t *testing.T) {
	s := owned(t, 20)
	middle := s.entries()["__strm:shop.orders.0"][3].ID
	s.untyped("processor", "reset", "--yes", "--start", middle, "orders/printer").want(t, 0, "→", "")
	want := map[string]bool{}
	for key, entries := range s.entries() {
		for _, e := range entries {
			if after(e.ID, middle) {
				want[key+" "+e.ID] = true
			}
		}
	}
	next := newShopAgain(t, s)
	seen := make(chan string, 100)
	next.orders.Process("printer", func(ctx context.Context, events *runnel.Events[order]) error {
		for e := range events.All() {
			seen <- fmt.Sprintf("__strm:shop.orders.%d %s", e.Partition, e.ID)
		}
		return nil
	}, nil)
	w := next.start("worker")
	for range len(want) {
		event := receive(t, seen, "event")
		if !want[event] {
			t.Errorf("event %s was handled", event)
		}
		delete(want, event)
	}
	eventually(t, "no lag", func() bool { return s.processor().Totals.Lag == 0 })
	w.stop().want(t, 0, "", "worker stopped")
	if len(seen) != 0 {
		t.Errorf("%d events more", len(seen))
	}
}

func TestResetRefusesWhileAWorkerRuns(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 2})
	handled := s.handled()
	s.send(4)
	w := s.start("worker")
	for range 4 {
		receive(t, handled, "event")
	}
	r := s.untyped("processor", "reset", "--yes", "orders/printer", "--to", "start")
	r.want(t, 1, "", s.processor().Members[0].Worker)
	r.want(t, 1, "", "nothing was changed")
	s.sends(order{Customer: "still here"})
	if got := receive(t, handled, "event"); got != "still here" {
		t.Errorf("handled %q", got)
	}
	w.stop().want(t, 0, "", "worker stopped")
}

func TestResetRefusesALockedPartition(t *testing.T) {
	s := owned(t, 4)
	before := s.processor()
	if err := s.rdb.Set(t.Context(), "__lock:shop.orders.printer.1", "aaaaaaaaaaaaaaaa:0000000000000001", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	s.untyped("processor", "reset", "--yes", "orders/printer", "--to", "start").want(t, 1, "", "partition 1: processor printer: owned by executor aaaaaaaaaaaaaaaa")
	now := s.processor()
	if now.Partitions[0].Executor != "" {
		t.Errorf("partition 0 is still locked: %+v", now.Partitions[0])
	}
	for i := range now.Partitions {
		if now.Partitions[i].Floor != before.Partitions[i].Floor || now.Partitions[i].Epoch != before.Partitions[i].Epoch {
			t.Errorf("changed: %+v, %+v", before.Partitions[i], now.Partitions[i])
		}
	}
	if ttl := s.rdb.PTTL(t.Context(), "__lock:shop.orders.printer.1").Val(); ttl < 50*time.Minute {
		t.Errorf("the foreign lock was cut down to %v", ttl)
	}
}

func TestResetOfWhatIsNotThere(t *testing.T) {
	s := newShop(t, nil)
	s.untyped("processor", "reset", "--yes", "orders/printer", "--to", "end").want(t, 1, "", `no stream "orders"`)
	s.send(1)
	s.untyped("processor", "reset", "--yes", "orders/printer", "--to", "end").want(t, 1, "", `no processor "printer"`)
}

// newShopAgain is the same app in another binary.
func newShopAgain(t *testing.T, s *shop) *shop {
	return shopAt(t, s.url, s.rdb, &runnel.StreamOptions{Partitions: 2, KeyField: "customer"})
}

func metaOf(processors ...string) store.Meta { return store.Meta{Processors: processors} }

func after(a, b string) bool {
	var ams, aseq, bms, bseq uint64
	fmt.Sscanf(a, "%d-%d", &ams, &aseq)
	fmt.Sscanf(b, "%d-%d", &bms, &bseq)
	return ams > bms || ams == bms && aseq > bseq
}
