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

// owned is a shop with two partitions whose worker has handled some orders and stopped.
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

// processor returns the processor's state as `status` prints it.
func (s *shop) processor() inspect.ProcessorState {
	s.t.Helper()
	state := printed[inspect.AppState](s, "status", "orders/printer")
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
	// A stopped worker finishes its iteration, not what it has read ahead.
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

func TestStatusOfNamesThatDoNotExist(t *testing.T) {
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

func TestProcessorWithoutItsStream(t *testing.T) {
	for _, command := range []string{"status", "workers ls", "check", "top"} {
		run(t.Context(), newShopApp(), "", append(strings.Fields(command), "/printer")...).want(t, 2, "", `"/printer" names no stream`)
	}
}

func metaOf(processors ...string) store.Meta { return store.Meta{Processors: processors} }

// A function that has been running for long is shown with its start.
func TestStatusShowsWhatRunsForLong(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 1})
	finish := make(chan struct{})
	s.orders.Process("printer", runnel.Each(func(context.Context, *runnel.Event, order) error { <-finish; return nil }),
		&runnel.ProcessorOptions{Timeout: 50 * time.Millisecond})
	w := s.start("worker")
	eventually(t, "the worker is ready", func() bool { return s.app.Ready() == nil })
	s.send(1)
	eventually(t, "running since", func() bool { return s.processor().Partitions[0].RunningSince != nil })
	if since := *s.processor().Partitions[0].RunningSince; time.Since(since) > time.Minute || time.Since(since) < time.Second {
		t.Errorf("running since %v", since)
	}
	s.untyped("status", "orders").want(t, 0, "partition 0: its function has been running since 20", "")
	close(finish)
	eventually(t, "running no more", func() bool { return s.processor().Partitions[0].RunningSince == nil })
	w.stop().want(t, 0, "", "function is stuck")
}

func TestStatusShowsParkedAndDeadEvents(t *testing.T) {
	s, ada, bob := two(t, 6)
	ada.park("ada")
	bob.bury("bob", "no paper")
	ada.must(ada.c.Quarantine(t.Context(), ada.place, ada.tenure, store.Quarantine{
		Reason: "event " + eventID(0, ada.entries[2].ID) + ": panic: no\nprinter\n\ngoroutine 7 [running]:\nmain.main()", Event: ada.entries[2].ID, Worker: "w1", At: 1767225600123,
	}))
	s.untyped("status", "orders/printer").matches(t,
		`PENDING +LAG +AGE +DELAYED +PARKED +DEAD +LOST +ACKED TO`,
		`(?m)^0 +aaaaaaaaaaaaaaaa +\S+ +\d+ +0 +0 +- +0 +3 +0 .* quarantined$`, `(?m)^1 +aaaaaaaaaaaaaaaa +\S+ +\d+ +0 +0 +- +0 +0 +3 .* ok$`, `(?m)^total +2 owned +0 +0 +- +0 +3 +3 +0 *$`,
		`partition 0 is quarantined since 2026-01-01T00:00:00Z by worker w1, at event `+eventID(0, ada.entries[2].ID)+`: panic: no printer\n`)
	p := s.processor()
	if p.Totals != (inspect.Totals{Owned: 2, Length: 6, Parked: 3, Dead: 3, Quarantined: 1}) || !strings.Contains(p.Partitions[0].Quarantine.Reason, "main.main()") {
		t.Errorf("totals %+v, %+v", p.Totals, p.Partitions[0].Quarantine)
	}
}
