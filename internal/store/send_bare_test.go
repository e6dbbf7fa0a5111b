package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
)

// large returns n records of so many bytes, each with its number in front.
func large(first, n, size int) [][]string {
	out := make([][]string, n)
	for i := range out {
		text := fmt.Sprint(first+i, " ")
		out[i] = []string{"data", text + strings.Repeat("x", size-len(text))}
	}
	return out
}

// sendLarge appends n records of 64 KB, from first on, to each partition of orders.
func (e *env) sendLarge(ctx context.Context, first, n, partitions int) []Appended {
	as := make([]Append, partitions)
	for i := range as {
		as[i] = Append{Stream: "orders", Partition: i, Records: large(first, n, 64<<10)}
	}
	return e.Append(ctx, as)
}

// calls is how many calls of a command the server had, "" for none.
func (e *env) calls(name string) string {
	e.t.Helper()
	info := try(e.raw.Info(e.ctx(), "commandstats").Result()).must(e.t)
	_, rest, _ := strings.Cut(info, "cmdstat_"+name+":calls=")
	n, _, _ := strings.Cut(rest, ",")
	return n
}

func (e *env) numbers(partition int) (out []string) {
	e.t.Helper()
	for _, x := range try(e.raw.XRange(e.ctx(), e.keys.Partition("orders", partition), "-", "+").Result()).must(e.t) {
		n, _, _ := strings.Cut(x.Values["data"].(string), " ")
		out = append(out, n)
	}
	return out
}

func TestLargeRecordsAreAppendedInTransactions(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.bounded(50_000, OverflowReject)
		var want []string
		for i := range 150 {
			want = append(want, fmt.Sprint(i))
		}
		for round := range 2 { // the second one knows that there are transactions
			for partition, got := range e.sendLarge(e.ctx(), 75*round, 75, 3) {
				e.must(got.Err)
				equal(t, fmt.Sprint("IDs of partition ", partition), len(got.IDs), 75)
			}
		}
		for partition := range 3 {
			equal(t, "records", fmt.Sprint(e.numbers(partition)), fmt.Sprint(want))
		}
		if e.real && e.calls("exec") != fmt.Sprint(2*3*2+1) { // of 4 MiB, and of the rest; and the look whether they are permitted
			t.Errorf("%s transactions", e.calls("exec"))
		}
	})
}

// However many send at once, partitions that are to be short do not get longer.
func TestLargeRecordsKeepToASmallLength(t *testing.T) {
	e := realEnv(t)
	e.bounded(100, OverflowReject)
	in := e.sendAtOnce(20, 30)
	equal(t, "records", len(e.numbers(0)), in)
	if in > 100 || in < 80 {
		t.Errorf("%d records in", in)
	}
}

// sendAtOnce has senders that each send n large records, one call after the other, until one is refused. It returns how many are in.
func (e *env) sendAtOnce(senders, n int) (in int) {
	var all sync.WaitGroup
	counts := make([]int, senders)
	for s := range senders {
		all.Go(func() {
			for {
				got := e.sendLarge(e.ctx(), 0, n, 1)[0]
				counts[s] += len(got.IDs)
				if got.Err != nil {
					if !errors.Is(got.Err, ErrStreamFull) {
						e.t.Error(got.Err)
					}
					return
				}
			}
		})
	}
	all.Wait()
	for _, n := range counts {
		in += n
	}
	return in
}

// Where less than a quarter is free the script appends them, and finds exactly what room there is.
func TestLargeRecordsKeepToTheLengthWhereRoomGetsScarce(t *testing.T) {
	e := realEnv(t)
	e.bounded(4096, OverflowReject)
	log := e.keys.Partition("orders", 0)
	pipe := e.raw.Pipeline()
	for range 3000 {
		pipe.XAdd(e.ctx(), &redis.XAddArgs{Stream: log, Values: []any{"data", "x"}})
	}
	try(pipe.Exec(e.ctx())).must(t)
	in := e.sendAtOnce(8, 30)
	equal(t, "length", int(e.raw.XLen(e.ctx(), log).Val()), 3000+in)
	if in > 1096 || in < 1096-30 {
		t.Errorf("%d records in", in)
	}
	equal(t, "in a transaction", e.calls("multi") != "", true)
}

// What refuses one of the records refuses all of them, and says what it is.
func TestATransactionThatIsRefusedLeavesNothing(t *testing.T) {
	e := realEnv(t)
	e.bounded(0, OverflowReject)
	e.must(e.sendLarge(e.ctx(), 0, 4, 1)[0].Err)
	log := e.keys.Partition("orders", 0)
	refused := func(what, want string) {
		t.Helper()
		got := e.sendLarge(e.ctx(), 4, 5, 1)[0]
		if got.Err == nil || !strings.Contains(got.Err.Error(), want) || got.Unknown || len(got.IDs) > 0 {
			t.Errorf("%s: got %v, %v, %v", what, got.IDs, got.Unknown, got.Err)
		}
	}
	e.must(e.raw.ConfigSet(e.ctx(), "maxmemory", "1").Err())
	refused("no memory", "OOM")
	e.must(e.raw.ConfigSet(e.ctx(), "maxmemory", "0").Err())
	equal(t, "length", e.raw.XLen(e.ctx(), log).Val(), 4)
	e.must(e.raw.Rename(e.ctx(), log, "away").Err())
	e.must(e.raw.Set(e.ctx(), log, "x", 0).Err())
	refused("a text", "WRONGTYPE")
	e.must(e.raw.Rename(e.ctx(), "away", log).Err())
	e.must(e.sendLarge(e.ctx(), 4, 5, 1)[0].Err)
	equal(t, "records", fmt.Sprint(e.numbers(0)), "[0 1 2 3 4 5 6 7 8]")

	e.must(e.raw.Do(e.ctx(), "XADD", log, "18446744073709551615-18446744073709551614", "data", "last ").Err())
	got := e.sendLarge(e.ctx(), 9, 5, 1)[0]
	if got.Err == nil || got.Unknown {
		t.Errorf("out of IDs: got %+v", got)
	}
	equal(t, "length", int(e.raw.XLen(e.ctx(), log).Val()), 10+len(got.IDs))
}

// Users who may not use transactions send by script; so do those who may no more.
func TestLargeRecordsNeedNoTransactions(t *testing.T) {
	for _, lacks := range []string{"multi", "exec", "discard"} {
		t.Run(lacks, func(t *testing.T) {
			e := realEnv(t)
			e.bounded(50_000, OverflowReject)
			e.must(e.raw.Do(e.ctx(), "ACL", "SETUSER", "default", "-"+lacks).Err())
			for i := range 2 {
				e.must(e.sendLarge(e.ctx(), 5*i, 5, 1)[0].Err)
			}
			equal(t, "records", fmt.Sprint(e.numbers(0)), "[0 1 2 3 4 5 6 7 8 9]")
		})
	}
	for lacks, refused := range map[string]bool{"multi": false, "exec": true} {
		e := realEnv(t)
		e.bounded(50_000, OverflowReject)
		e.must(e.sendLarge(e.ctx(), 0, 5, 1)[0].Err)
		e.must(e.raw.Do(e.ctx(), "ACL", "SETUSER", "default", "-"+lacks).Err())
		if refused {
			if got := e.sendLarge(e.ctx(), 5, 5, 1)[0]; got.Unknown || !redisconn.ReplyHas(got.Err, "NOPERM") || len(got.IDs) > 0 {
				t.Errorf("got %+v", got)
			}
		}
		for i := range 2 {
			got := e.sendLarge(e.ctx(), 5+5*i, 5, 1)[0]
			e.must(got.Err)
			equal(t, "IDs", len(got.IDs), 5)
		}
		equal(t, "records", fmt.Sprint(e.numbers(0)), "[0 1 2 3 4 5 6 7 8 9 10 11 12 13 14]")
		equal(t, "the right is known to be gone", *e.transactions.Load(), false)
	}
}

// A connection that ends before a transaction reached its end leaves nothing of it, one that ends behind it all of it; and the
// outcome is unknown.
func TestATransactionWithoutAReplyIsUnknown(t *testing.T) {
	for action, want := range map[faultproxy.Action]int{faultproxy.CloseBefore: 5, faultproxy.CloseAfter: 10} {
		e := realEnv(t)
		e.bounded(50_000, OverflowReject)
		proxy, through := e.behindProxy()
		e.must(through.sendLarge(e.ctx(), 0, 5, 1)[0].Err)
		proxy.On("EXEC", 1).Do(action)
		if got := through.sendLarge(e.ctx(), 5, 5, 1)[0]; !got.Unknown || len(got.IDs) > 0 {
			t.Errorf("got %+v", got)
		}
		equal(t, "records", len(e.numbers(0)), want)
	}
}

// Where memory is short now and then, what is refused is sent again, and stays in order.
func TestLargeRecordsStayInOrderWhileMemoryIsShort(t *testing.T) {
	e := realEnv(t)
	e.bounded(50_000, OverflowReject)
	const n = 2000
	done, toggled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(toggled)
		for limit := 0; ; limit = 1 - limit {
			select {
			case <-done:
				e.raw.ConfigSet(e.ctx(), "maxmemory", "0")
				return
			default:
				e.raw.ConfigSet(e.ctx(), "maxmemory", fmt.Sprint(limit))
			}
		}
	}()
	refused := 0
	for at := 0; at < n; {
		got := e.Append(e.ctx(), []Append{{Stream: "orders", Records: large(at, min(40, n-at), 20<<10)}})[0]
		if at += len(got.IDs); got.Err != nil {
			if refused++; got.Unknown || !strings.Contains(got.Err.Error(), "OOM") {
				t.Fatal(got)
			}
		}
	}
	close(done)
	<-toggled
	var want []string
	for i := range n {
		want = append(want, fmt.Sprint(i))
	}
	equal(t, "records", fmt.Sprint(e.numbers(0)), fmt.Sprint(want))
	equal(t, "some were refused", refused > 0, true)
}
