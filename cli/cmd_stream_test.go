package cli

import (
	"testing"
	"time"

	"github.com/runnel-go/runnel"
)

func TestStreams(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 2, MaxLen: 20, KeyField: "customer"})
	if list := printed[[]listedStream](s, "stream", "ls"); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	s.send(10)
	if _, err := s.orders.SendEvents(t.Context(), runnel.Outgoing[order]{Record: order{Customer: "x"}, After: time.Hour}); err != nil {
		t.Fatal(err)
	}
	list := printed[[]listedStream](s, "stream", "ls")
	if len(list) != 1 || list[0].Stream != "orders" || list[0].Partitions != 2 || list[0].Length != 10 || list[0].Delayed != 1 ||
		list[0].Size != 20 || list[0].KeyField != "customer" || list[0].Logs != nil || list[0].Processors == nil {
		t.Errorf("%+v", list)
	}
	info := printed[listedStream](s, "stream", "info", "orders")
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
	s.untyped("stream", "ls").want(t, 0, "orders  -     2           20    10      1", "")
	s.untyped("stream", "info", "orders").want(t, 0, "key field customer", "")
	s.untyped("stream", "info", "nope").want(t, 1, "", `no stream "nope"`)
	s.untyped("stream", "info").want(t, 2, "", "which stream?")
	s.untyped("stream", "ls", "orders").want(t, 2, "", `unexpected argument "orders"`)
}

// A partition emptied by hand still has its end, and one of a wrong type has an error.
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
	info := printed[listedStream](s, "stream", "info", "orders")
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

func TestStreamRmLeavesNothing(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 2, KeyField: "customer"})
	handled := s.handled()
	s.send(4)
	if _, err := s.orders.SendEvents(t.Context(), runnel.Outgoing[order]{Record: order{Customer: "late"}, After: time.Hour}); err != nil {
		t.Fatal(err)
	}
	w := s.start("worker")
	for range 4 {
		receive(t, handled, "event")
	}
	s.untyped("stream", "rm", "--yes", "orders").want(t, 1, "", "orders/printer is run by worker")
	w.stop().want(t, 0, "", "worker stopped")
	s.untyped("stream", "rm", "orders").want(t, 2, "", "with 4 entries, 1 delayed event, 1 processor and 0 dead letters? There is no terminal to ask at: say --yes")
	s.untyped("pause", "orders").want(t, 0, "pause of", "")
	s.untyped("block", "orders/printer", "--as-admin", "--partition", "1").want(t, 0, "block of", "")
	s.untyped("pause", "orders2", "--yet").want(t, 0, "pause of", "")
	s.untyped("stream", "rm", "--yes", "orders").want(t, 0, "stream orders removed; 4 entries, 1 delayed event, 1 processor, 0 dead letters, 2 rules\n", "")
	if left := s.ruled(); len(left) != 1 || left[0].Scope != "stream:orders2" || !left[0].Absent {
		t.Errorf("rules after that: %+v", left)
	}
	if keys := s.rdb.Keys(t.Context(), "*orders*").Val(); len(keys) != 0 {
		t.Errorf("left behind: %v", keys)
	}
	s.untyped("stream", "rm", "--yes", "orders").want(t, 1, "", `no stream "orders"`)
}
