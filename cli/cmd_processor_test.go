package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/inspect"
)

func TestProcessorLs(t *testing.T) {
	s := owned(t, 4)
	s.send(6)
	if _, err := s.orders.SendAfter(t.Context(), time.Hour, order{Customer: "ada"}); err != nil {
		t.Fatal(err)
	}
	s.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: s.client().Partition("orders", "printer", 1).Dead, Values: []any{"data", "x"}})
	s.untyped("pause", "orders/printer", "--partition", "1").want(t, 0, "pause of partition:orders/printer/1", "")
	list := printed[[]listedProcessor](s, "processor", "ls")
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
	p := printed[inspect.ProcessorState](s, "processor", "info", "orders/printer")
	if p.Processor != "printer" || len(p.Partitions) != 2 || p.Totals.Length != 20 {
		t.Errorf("%+v", p)
	}
	s.untyped("processor", "info", "orders").want(t, 2, "", "say STREAM/PROCESSOR")
	s.untyped("processor", "info", "orders/nothing").want(t, 1, "", `no processor "nothing"`)
}

func TestMovePinsPartitions(t *testing.T) {
	s := pair(t)
	s.untyped("processor", "move", "orders/printer", "0,1,3", "w2").want(t, 0, "orders/printer: partitions 0-1 3 are pinned to worker w2\n", "")
	eventually(t, "they are there", func() bool { return slices.Equal(s.ownedBy()["w2"], []int{0, 1, 3}) && len(s.ownedBy()["w1"]) == 1 })
	s.run("workers", "ls").matches(t, `(?m)^orders/printer +w2 .* 0-1 3 +0-1 3 +0-1 3 +-$`)
	s.run("status", "orders").matches(t, `(?m)^partitions 0-1 3 are pinned to worker w2; it ends with processor move orders/printer 0-1,3 --unpin$`)
	s.untyped("processor", "move", "orders/printer", "0-3", "--unpin").want(t, 0, "orders/printer: partitions 0-3 are not pinned any more\n", "")
	eventually(t, "the shares are even again", func() bool { return len(s.ownedBy()["w2"]) == 2 && len(s.ownedBy()["w1"]) == 2 })
	s.untyped("processor", "move", "orders/printer", "0", "nobody").want(t, 1, "", `stream orders: processor printer: no worker "nobody"; there is w1, w2`)
	for _, args := range []string{"", "0", "0 w1 --unpin", "4 w1", "x w1"} {
		if r := s.untyped(append([]string{"processor", "move", "orders/printer"}, strings.Fields(args)...)...); r.code != 2 {
			t.Errorf("%q: %+v", args, r)
		}
	}
	s.untyped("processor", "move", "orders/nothing", "0", "w1").want(t, 1, "", `no processor "nothing"`)
}
