package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/inspect"
)

func TestMembers(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 3})
	s.handled()
	s.untyped("workers", "ls").want(t, 0, "PROCESSOR", "")
	w := s.start("worker")
	eventually(t, "a member that owns all", func() bool {
		list := told[[]listedMember](s, "workers", "ls")
		return len(list) == 1 && len(list[0].Owned) == 3
	})
	m := told[[]listedMember](s, "workers", "ls", "orders/printer")[0]
	if m.Stream != "orders" || m.Processor != "printer" || !m.Alive || !slices.Equal(m.Assigned, []int{0, 1, 2}) || !slices.Equal(m.Owned, m.Assigned) {
		t.Errorf("%+v", m)
	}
	r := s.untyped("workers", "ls")
	r.matches(t, `(?m)^orders/printer +\S+ +[a-z2-7]{16} +\S+ ago +expires in \S+ +0-2 +0-2 +- +-$`)
	w.stop().want(t, 0, "", "worker stopped")
	if list := told[[]listedMember](s, "workers", "ls"); len(list) != 0 {
		t.Errorf("after the end: %+v", list)
	}
	s.untyped("workers", "ls", "nope").want(t, 1, "", `no stream "nope"`)
	s.untyped("workers", "ls", "orders/nope").want(t, 1, "", `no processor "nope"`)
}

func TestStreams(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 2, MaxLen: 20, KeyField: "customer"})
	if list := told[[]listedStream](s, "stream", "ls"); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	s.send(10)
	if _, err := s.orders.SendEvents(t.Context(), runnel.Outgoing[order]{Record: order{Customer: "x"}, After: time.Hour}); err != nil {
		t.Fatal(err)
	}
	list := told[[]listedStream](s, "stream", "ls")
	if len(list) != 1 || list[0].Stream != "orders" || list[0].Partitions != 2 || list[0].Length != 10 || list[0].Delayed != 1 ||
		list[0].Size != 20 || list[0].KeyField != "customer" || list[0].Logs != nil || list[0].Processors == nil {
		t.Errorf("%+v", list)
	}
	info := told[listedStream](s, "stream", "info", "orders")
	var length, delayed int64
	for i, l := range info.Logs {
		all := s.entries()[l.Key]
		if l.Partition != i || l.First != all[0].ID || l.End != all[len(all)-1].ID || int(l.Length) != len(all) {
			t.Errorf("partition %d: %+v, has %v", i, l, all)
		}
		length, delayed = length+l.Length, delayed+l.Delayed
	}
	if length != 10 || delayed != 1 || len(info.Logs) != 2 {
		t.Errorf("%+v", info)
	}
	s.untyped("stream", "ls").want(t, 0, "orders  2           20    10      1", "")
	s.untyped("stream", "info", "orders").want(t, 0, "key field customer", "")
	s.untyped("stream", "info", "nope").want(t, 1, "", `no stream "nope"`)
	s.untyped("stream", "info").want(t, 2, "", "which stream?")
	s.untyped("stream", "ls", "orders").want(t, 2, "", `unexpected argument "orders"`)
}

// A partition that was emptied by hand still tells where it has come to, and one of
// a wrong type why it tells nothing.
func TestStreamInfoOfOddPartitions(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 3})
	s.send(20)
	var last []string
	for _, key := range []string{"__strm:shop.orders.0", "__strm:shop.orders.1"} {
		last = append(last, s.rdb.XRevRangeN(t.Context(), key, "+", "-", 1).Val()[0].ID)
	}
	s.rdb.XTrimMaxLen(t.Context(), "__strm:shop.orders.0", 0)
	s.rdb.Del(t.Context(), "__strm:shop.orders.2")
	s.rdb.Set(t.Context(), "__strm:shop.orders.2", "x", 0)
	info := told[listedStream](s, "stream", "info", "orders")
	if l := info.Logs[0]; l.Length != 0 || l.First != "" || l.End != last[0] || l.Err != "" {
		t.Errorf("emptied: %+v", l)
	}
	if l := info.Logs[1]; l.End != last[1] {
		t.Errorf("%+v", l)
	}
	if l := info.Logs[2]; l.Err == "" {
		t.Errorf("of a wrong type: %+v", l)
	}
	s.untyped("stream", "info", "orders").want(t, 0, "stream orders partition 2: look: key holds a wrong Redis type", "")
}

func TestProcessorLs(t *testing.T) {
	s := owned(t, 4)
	s.send(6)
	if _, err := s.orders.SendAfter(t.Context(), time.Hour, order{Customer: "ada"}); err != nil {
		t.Fatal(err)
	}
	s.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: s.client().Partition("orders", "printer", 1).Dead, Values: []any{"data", "x"}})
	s.untyped("pause", "orders/printer", "--partition", "1").want(t, 0, "pause of partition:orders/printer/1", "")
	list := told[[]listedProcessor](s, "processor", "ls")
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	p := list[0]
	if p.Processor != "printer" || p.Members != 0 || p.Partitions != 2 || p.Held != 1 || p.Totals.Lag != 6 || p.Totals.Dead != 1 || p.Totals.Owned != 0 {
		t.Errorf("%+v", p)
	}
	r := s.untyped("processor", "ls", "orders")
	r.matches(t, `(?m)^orders/printer +0 +0 of 2 +0 +6 +\S+ +1 +0 +1 +0 +1 +0$`)
	s.untyped("processor", "ls", "orders/printer").want(t, 2, "", "is no stream")
}

func TestProcessorInfo(t *testing.T) {
	s := owned(t, 20)
	r := s.untyped("processor", "info", "orders/printer")
	r.matches(t, `(?m)^processor orders/printer: generation \d+, 0 members$`, `(?m)^PARTITION +OWNER +EXECUTOR +LEASE`, `(?m)^total +0 owned`)
	if !strings.HasPrefix(r.out, "processor orders/printer: ") {
		t.Errorf("begins with %.40q", r.out)
	}
	p := told[inspect.ProcessorState](s, "processor", "info", "orders/printer")
	if p.Processor != "printer" || len(p.Partitions) != 2 || p.Totals.Length != 20 {
		t.Errorf("%+v", p)
	}
	s.untyped("processor", "info", "orders").want(t, 2, "", "say STREAM/PROCESSOR")
	s.untyped("processor", "info", "orders/nothing").want(t, 1, "", `no processor "nothing"`)
}
