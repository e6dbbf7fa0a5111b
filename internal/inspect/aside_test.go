package inspect

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

var me = store.Claim{Executor: alice, Number: 1}

// pending makes alice own a partition and read n entries: 1-0, 2-0, …
func pending(t *testing.T, c *store.Client, p store.Partition, n int) []redisconn.Entry {
	t.Helper()
	for i := range n {
		must(t, c.Redis().XAdd(t.Context(), &redis.XAddArgs{Stream: p.Log, ID: fmt.Sprint(i+1, "-0"), Values: []any{"data", i}}).Err())
	}
	must(t, c.Lock(t.Context(), p, me, time.Hour, 0))
	_, err := c.Takeover(t.Context(), p, me, "", 0)
	must(t, err)
	r := c.NewReader()
	defer r.Close()
	got, err := r.Read(t.Context(), store.GroupName(p.Processor, alice), "c", []string{p.Log}, n, 0)
	must(t, err)
	return got[0].Entries
}

func TestWhatStandsAsideIsCounted(t *testing.T) {
	both(t, func(t *testing.T, c *store.Client) {
		stream(t, c, "orders", "printer")
		p := c.Partition("orders", "printer", 2)
		entries := pending(t, c, p, 5)
		for i, e := range entries[:3] {
			must(t, c.Park(t.Context(), p, me, 0, []store.Parking{{Entry: e, State: store.RetryState{Attempts: i}}}))
		}
		must(t, c.DeadLetter(t.Context(), p, me, store.DeadLetter{Entry: entries[3]}))
		must(t, c.Quarantine(t.Context(), p, me, store.Quarantine{Reason: "no ink", Event: "5-0", Worker: "w1", At: 1767225600123}))
		got, err := Processor(t.Context(), c, "orders", "printer", 0)
		must(t, err)
		if got.Totals.Parked != 3 || got.Totals.Dead != 1 || got.Totals.Quarantined != 1 || got.Totals.Pending != 1 {
			t.Errorf("totals %+v", got.Totals)
		}
		part := got.Partitions[2]
		want := QuarantineState{Reason: "no ink", Event: "2/5-0", Worker: "w1", At: time.UnixMilli(1767225600123).UTC()}
		if part.Parked != 3 || part.Dead != 1 || part.Quarantine == nil || *part.Quarantine != want {
			t.Errorf("partition %+v, quarantine %+v", part, part.Quarantine)
		}
	})
}
