package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/python"
)

const pythonExecutor = "iqzhn8WjQjSLPZZU3iBIAA"

// python stores what a worker of Python's runnel keeps while it runs orders/printer.
func (s *shop) python(life time.Duration) {
	s.t.Helper()
	ctx, orders := s.t.Context(), s.app.Name()+".orders"
	for key, value := range map[string]string{
		"__memb:" + orders + ".printer":                   `{"` + pythonExecutor + `": {"joined_at": "2026-11-23T02:48:55.296746", "partitions": [0, 1]}}`,
		"__beat:" + orders + ".printer." + pythonExecutor: "beat",
		"__lock:" + orders + ".printer.0":                 pythonExecutor,
	} {
		ttl := life
		if strings.HasPrefix(key, "__memb") {
			ttl = 0
		}
		if err := s.rdb.Set(ctx, key, value, ttl).Err(); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := s.rdb.XGroupCreateMkStream(ctx, "__strm:"+orders+".0", "printer", "0").Err(); err != nil {
		s.t.Fatal(err)
	}
}

// A processor registered here while Python's runnel runs it is shown as such, and its registration
// can be removed meanwhile.
func TestProcessorThatPythonRuns(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 2})
	s.registered()
	s.python(time.Minute)
	for _, args := range [][]string{{"status", "orders"}, {"workers", "ls"}, {"processor", "info", "orders/printer"}} {
		s.untyped(args...).want(t, 0, "Python's runnel", "")
	}
	s.untyped("processor", "ls").want(t, 0, "orders/printer", "")
	s.untyped("stream", "rm", "--yes", "orders", "--yes").want(t, 1, "", "orders/printer is run by worker Python's runnel: stop it first; nothing was changed")
	s.untyped("processor", "move", "orders/printer", "0", "Python's runnel").want(t, 1, "", pythonExecutor)
	s.untyped("processor", "rm", "--yes", "orders/printer").want(t, 0, "orders/printer is no processor of this app any more; Python's runnel, which runs it, goes on", "")
	if list := printed[[]listedProcessor](s, "processor", "ls"); len(list) != 0 {
		t.Errorf("still registered: %+v", list)
	}
	if n := s.rdb.Exists(t.Context(), "__memb:"+s.app.Name()+".orders.printer", "__lock:"+s.app.Name()+".orders.printer.0").Val(); n != 2 {
		t.Errorf("%d of 2 keys of Python's are left", n)
	}
	if g := s.rdb.XInfoGroups(t.Context(), "__strm:"+s.app.Name()+".orders.0").Val(); len(g) == 0 || g[0].Name != "printer" {
		t.Errorf("Python's consumer group: %+v", g)
	}
}

// A consumer group of another program holds back what it has not acked. It is listed, named in the
// errors of senders, and can be removed.
func TestGroupOfAnotherProgram(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 1, MaxLen: 4})
	s.registered()
	ctx, log := t.Context(), "__strm:"+s.app.Name()+".orders.0"
	if err := s.rdb.XGroupCreate(ctx, log, "billing", "0").Err(); err != nil {
		t.Fatal(err)
	}
	s.send(3)
	info := printed[listedStream](s, "stream", "info", "orders")
	if len(info.Groups) != 1 || info.Groups[0].Group != "billing" || info.Groups[0].Who != "another program" || info.Groups[0].Lag != 4 || info.Groups[0].Partitions != 1 {
		t.Errorf("%+v", info.Groups)
	}
	s.untyped("stream", "info", "orders").want(t, 0, "billing  another program  false  1           0        4    0/0-0", "")
	for _, g := range s.rdb.XInfoGroups(ctx, log).Val() {
		if strings.HasPrefix(g.Name, "printer@") {
			for _, e := range s.rdb.XReadGroup(ctx, &redis.XReadGroupArgs{Group: g.Name, Consumer: "c", Streams: []string{log, ">"}}).Val()[0].Messages {
				s.rdb.XAck(ctx, log, g.Name, e.ID)
			}
		}
	}
	if err := s.orders.Send(ctx, order{}); err == nil || !strings.Contains(err.Error(), "consumer group billing") {
		t.Errorf("%v, want an error that names the group", err)
	}
	s.untyped("processor", "rm", "orders/billing").want(t, 2, "", "consumer group billing of stream orders (another program), which has not acked 4 events, with its position? There is no terminal to ask at: say --yes")
	s.untyped("processor", "rm", "orders/nope", "--yes").want(t, 1, "", `no processor "nope"`)
	s.untyped("processor", "rm", "orders/billing", "--yes").want(t, 0, "consumer group billing of stream orders destroyed; 4 events not acked", "")
	if err := s.orders.Send(ctx, order{}); err != nil {
		t.Errorf("without the group: %v", err)
	}
	if info := printed[listedStream](s, "stream", "info", "orders"); len(info.Groups) != 0 {
		t.Errorf("%+v", info.Groups)
	}
}

func TestGroupThatPythonReads(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 1})
	s.send(1)
	s.python(time.Minute)
	info := printed[listedStream](s, "stream", "info", "orders")
	if len(info.Groups) != 1 || info.Groups[0].Who != "Python's runnel" || !info.Groups[0].Alive {
		t.Errorf("%+v", info.Groups)
	}
	s.untyped("processor", "rm", "orders/printer", "--yes").want(t, 1, "", "consumer group printer of stream orders is read by Python's runnel, which is running: stop it first")
	s.untyped("stream", "rm", "orders", "--yes").want(t, 1, "", "consumer group printer of stream orders is read by Python's runnel, which is running: stop it first; nothing was changed")
	if n := s.rdb.XLen(t.Context(), "__strm:"+s.app.Name()+".orders.0").Val(); n != 1 {
		t.Errorf("%d entries are left", n)
	}
}

// Python's runnel continues where a processor in Go stopped.
func TestProcessorGoesBackToPython(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 2})
	s.python(time.Millisecond) // it ran in Python before, and has read nothing
	for s.rdb.Exists(t.Context(), "__lock:"+s.app.Name()+".orders.printer.0").Val() > 0 {
		time.Sleep(time.Millisecond)
	}
	s.registered()
	s.send(5)
	s.run("processor", "rm", "orders/printer", "--to-python").want(t, 0, "orders/printer left to Python's runnel, with all that waits for it", "")
	left, lag := s.rdb.Keys(t.Context(), "*printer*").Val(), int64(0)
	if len(left) != 0 {
		t.Errorf("left: %q", left)
	}
	for _, n := range []string{"0", "1"} {
		groups := s.rdb.XInfoGroups(t.Context(), "__strm:"+s.app.Name()+".orders."+n).Val()
		if len(groups) != 1 || groups[0].Name != "printer" || groups[0].Pending != 0 {
			t.Fatalf("partition %s: %+v, want the plain group alone", n, groups)
		}
		lag += groups[0].Lag
	}
	if lag != 5 {
		t.Errorf("%d events wait for Python, want 5", lag)
	}
}

// Python stores no number of partitions. If it has more of them, no worker reads what it sends
// there.
func TestPythonHasMorePartitions(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 16})
	sends := func(partition string) {
		t.Helper()
		if err := s.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: "__strm:shop.orders." + partition, Values: []any{"data", "{}"}}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	s.registered()
	s.attended()
	s.checked(0)
	const both = "stream orders: this app has 16 partitions of it, and Redis has 18, up to __strm:shop.orders.17"
	sends("16")
	sends("17")
	s.run("worker").want(t, 1, "", both)
	if v := s.checked(3); len(v.Findings) != 1 || v.Findings[0].What != "partitions" || v.Findings[0].Value != 18 || v.Findings[0].Limit != 16 {
		t.Errorf("%+v", v)
	}
	s.untyped("check").want(t, 3, both, "")
	s.untyped("doctor").want(t, 3, both, "")
	s.rdb.Del(t.Context(), "__meta:shop.orders", "__meta:shop")
	other := runnel.New("shop", &runnel.Options{RedisURL: s.url})
	defer other.Close()
	first := runnel.NewStream(other, "orders", func(o order) string { return o.Customer }, nil)
	if err := first.Send(t.Context(), order{}); err == nil || !strings.Contains(err.Error(), both) {
		t.Errorf("the first sender: %v", err)
	}
	if n := s.rdb.Exists(t.Context(), "__meta:shop.orders", "__meta:shop").Val(); n != 0 {
		t.Error("the sender has stored its own number")
	}
}

// pythonWorks acts as a worker of Python's runnel on partition 0: it joins with the only form of
// membership that it knows, continues from its group, and stops. It returns the data that it has
// processed.
func (s *shop) pythonWorks() (all []string) {
	s.t.Helper()
	ctx, log, members := s.t.Context(), "__strm:shop.orders.0", map[string]struct {
		JoinedAt   string `json:"joined_at"`
		Partitions []int  `json:"partitions"`
	}{}
	if stored, err := s.rdb.Get(ctx, "__memb:shop.orders.printer").Bytes(); err == nil {
		if err := json.Unmarshal(stored, &members); err != nil {
			s.t.Fatalf("Python's worker ends with a TypeError: %v in %s", err, stored)
		}
	}
	if err := s.rdb.XGroupCreateMkStream(ctx, log, "printer", "0").Err(); err != nil && !strings.HasPrefix(err.Error(), "BUSYGROUP") {
		s.t.Fatal(err)
	}
	for _, from := range []string{"0", ">"} {
		got, err := s.rdb.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "printer", Consumer: "1", Streams: []string{log, from}, Block: -1}).Result()
		if err != nil && err != redis.Nil {
			s.t.Fatal(err)
		}
		for _, stream := range got {
			for _, m := range stream.Messages {
				all = append(all, m.Values["data"].(string))
				s.rdb.XAck(ctx, log, "printer", m.ID)
			}
		}
	}
	s.rdb.Set(ctx, "__memb:shop.orders.printer", "{}", 0)
	return all
}

// By the steps of docs/partitioning.md, from Python to Go, back, and to Go again, each event is
// processed once.
func TestThereAndBackAgain(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 1, Codec: codec.JSON, Partitioner: python.Partitioner})
	handled := s.handled()
	sends := func(customers ...string) {
		for _, c := range customers {
			s.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: "__strm:shop.orders.0", Values: []any{"data", `{"customer":"` + c + `"}`}})
		}
	}
	goes := func(want ...string) {
		t.Helper()
		worker := s.start("worker")
		var got []string
		for range want {
			got = append(got, receive(t, handled, "event"))
		}
		worker.stop().want(t, 0, "", "worker stopped")
		if len(handled) > 0 || !slices.Equal(got, want) {
			t.Errorf("Go got %q and %d more, want %q", got, len(handled), want)
		}
	}
	sends("a", "b")
	if got := s.pythonWorks(); len(got) != 2 {
		t.Errorf("Python got %q", got)
	}
	sends("c", "d")
	s.rdb.XReadGroup(t.Context(), &redis.XReadGroupArgs{Group: "printer", Consumer: "1", Streams: []string{"__strm:shop.orders.0", ">"}, Count: 1})
	goes("c", "d") // c was pending
	sends("e")
	s.untyped("processor", "rm", "orders/printer", "--to-python").want(t, 0, "orders/printer left to Python's runnel", "")
	if got := s.pythonWorks(); len(got) != 1 || got[0] != `{"customer":"e"}` {
		t.Errorf("back in Python: %q, want e", got)
	}
	sends("f")
	goes("f")
}
