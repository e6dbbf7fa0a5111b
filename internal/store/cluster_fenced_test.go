package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// In a cluster, too, a commit of a former owner is refused, counted by its node, and leaves nothing.
func TestClusterRefusesCommitsOfFormerOwners(t *testing.T) {
	const parts = 16
	k := redistest.StartCluster(t, 3, 0)
	c, err := Open(redisconn.Options{URL: k.URL(), Keys: keys.Keys{App: "shop", Layout: keys.Cluster}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	ctx, rdb := t.Context(), k.Client(t)
	if _, err := c.EnsureMeta(ctx, "orders", Meta{Partitions: parts, MaxLen: 1000, Codec: "json", Partitioner: "xxh64"}); err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	commit := func(p Partition, by Claim, number int64, value string) error {
		return c.Commit(ctx, []Commit{{Partition: p, Claim: by, Number: number, Committed: fmt.Sprint("1-", number), Read: -1, Epoch: 1, Boxes: 1, Boxed: number - 1, Changes: &Changes{
			Tables: []TableChanges{{Table: c.Table("orders", "totals", p.Number), Rows: map[string]Row{"k": {Value: value, There: true}}}},
			Outputs: []Output{
				{Stream: "bills", Partition: p.Number, Fields: []string{"data", value}},
				{Stream: "bills", Partition: p.Number + 1, Fields: []string{"data", value}},
			},
		}}})[0]
	}
	for n := range parts {
		p := c.Partition("orders", "sum", n)
		for i := range 3 {
			must(rdb.XAdd(ctx, &redis.XAddArgs{Stream: p.Log, ID: fmt.Sprint("1-", i+1), Values: []string{"data", "x"}}).Err())
		}
		for i, owner := range []string{alice, bob} {
			must(rdb.Set(ctx, p.Lock, byPosition(owner).LockValue(), time.Minute).Err())
			_, err := c.Takeover(ctx, p, byPosition(owner), "", 0)
			if must(err); i == 0 {
				must(commit(p, byPosition(owner), 1, "first"))
			}
		}
		if err := commit(p, byPosition(alice), 2, "late"); !errors.Is(err, ErrFenced) {
			t.Errorf("partition %d: a former owner's commit: %v", n, err)
		}
		row, _, err := c.Row(ctx, c.Table("orders", "totals", n), "k")
		must(err)
		outs, boxed := rdb.XLen(ctx, c.Keys().Partition("bills", n)).Val(), rdb.XLen(ctx, p.Outbox).Val()
		if row.Value != "first" || outs != 1 || boxed != 1 {
			t.Errorf("partition %d: row %q, %d outputs, %d in the outbox", n, row.Value, outs, boxed)
		}
	}
	refused := 0
	for _, node := range k.Masters() {
		_, count, _ := strings.Cut(node.Client(t).Info(ctx, "errorstats").Val(), "errorstat_FENCED:count=")
		n := 0
		_, _ = fmt.Sscan(count, &n) // else none
		refused += n
	}
	if refused != parts {
		t.Errorf("%d commits were refused, want %d", refused, parts)
	}
}
