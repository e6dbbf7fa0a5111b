package inspect

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A Back returns every entry once, newest first, and reads little more than that.
func TestBack(t *testing.T) {
	server := redistest.Start(t)
	ctx := t.Context()
	counter := redistest.CountingDialer(nil)
	shared := redis.NewClient(&redis.Options{Addr: server.Addr(), Dialer: counter.Dial})
	defer shared.Close()
	c, err := store.Open(redisconn.Options{Redis: shared, Keys: keys.Keys{App: "shop", Layout: keys.Standalone}})
	must(t, err)
	defer c.Close()
	add := func(partition int, id string) {
		must(t, c.Redis().XAdd(ctx, &redis.XAddArgs{Stream: c.Keys().Partition("orders", partition), ID: id, Values: []any{"data", "x"}}).Err())
	}
	var want []string
	for i := range 200 { // partition 0 has most, 2 has none, and 1 has the lowest ID
		add(0, fmt.Sprintf("%d-0", 1000+i))
		want = append([]string{fmt.Sprintf("0/%d-0", 1000+i)}, want...)
	}
	for _, id := range []string{"0-1", "7-0", "7-1"} {
		add(1, id)
	}
	want = append(want, "1/7-1", "1/7-0", "1/0-1")
	read := func(from string, partitions ...int) (got []string) {
		b := NewBack(c, "orders", partitions, from)
		for {
			e, ok, err := b.Next(ctx)
			must(t, err)
			if !ok {
				return got
			}
			got = append(got, fmt.Sprintf("%d/%s", e.Partition, e.Entry.ID))
		}
	}
	if got := read("", 0, 1, 2); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := read("7-0", 1); !reflect.DeepEqual(got, []string{"1/7-0", "1/0-1"}) {
		t.Errorf("from an ID: %q", got)
	}
	counter.Reset()
	b := NewBack(c, "orders", []int{0, 1, 2}, "")
	for range 10 {
		_, _, err := b.Next(ctx)
		must(t, err)
	}
	// 1 of each partition, then 2, 4 and 8 of the one with the newest.
	if got := counter.ByName()["XREVRANGE"]; got != 6 {
		t.Errorf("10 entries cost %d reads", got)
	}
}

func TestAuditPairs(t *testing.T) {
	server := redistest.Start(t)
	ctx := t.Context()
	c, err := store.Open(redisconn.Options{URL: server.URL(), Keys: keys.Keys{App: "shop", Layout: keys.Standalone}})
	must(t, err)
	defer c.Close()
	begin := func(what string) string {
		id, err := c.BeginAudit(ctx, store.Audit{Who: "ada", From: "192.0.2.1", What: what, On: "orders/printer", Why: "so", Detail: "3/5-0"})
		must(t, err)
		return id
	}
	first, second := begin("replay"), begin("drop")
	begin("pause") // its outcome was never noted
	must(t, c.EndAudit(ctx, store.Audit{Of: second, Outcome: "failed", Result: "no paper"}))
	must(t, c.EndAudit(ctx, store.Audit{Of: first, Outcome: "done", Result: "1 dead letter replayed"}))
	got, err := Audit(ctx, c, 10)
	must(t, err)
	if len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	for i, want := range []string{"pause  ", "drop failed no paper", "replay done 1 dead letter replayed"} {
		if text := got[i].What + " " + got[i].Outcome + " " + got[i].Result; text != want || (got[i].Ended == nil) != (got[i].Outcome == "") || got[i].Who != "ada" || got[i].Detail != "3/5-0" {
			t.Errorf("%+v, want %s", got[i], want)
		}
	}
	if got, err := Audit(ctx, c, 1); err != nil || len(got) != 1 || got[0].What != "pause" {
		t.Errorf("%+v, %v", got, err)
	}
}
