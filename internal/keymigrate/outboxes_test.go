package keymigrate

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// What waits in outboxes comes before keys get names under which no owner looks into these; else nothing is moved.
func TestOutboxesAreEmptiedOnTheWayBack(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	scene(t, rdb)
	move(t, rdb, Options{})
	c := open(t, rdb, keys.Cluster)
	_, err := c.EnsureMeta(t.Context(), "orders", store.Meta{Partitions: 3, Processors: []string{"printer"}, Atomic: []string{"printer"}})
	must(t, err)
	p := c.Partition("orders", "printer", 1)
	wait := func(id string) {
		must(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: p.Outbox, ID: id, Values: []any{"to", "0 bills", "data", id}}).Err())
	}
	wait("7-1")
	bills := tagged.Partition("bills", 0)
	_, err = c.EnsureMeta(t.Context(), "bills", store.Meta{Partitions: 1, MaxLen: 1, Overflow: store.OverflowReject, Codec: "json", Partitioner: "xxh64", Processors: []string{"mailer"}})
	must(t, err)
	must(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: bills, Values: []any{"data", "it is full"}}).Err())
	must(t, rdb.XGroupCreate(t.Context(), bills, store.GroupName("mailer", "aaaaaaaaaaaaaaaa"), "0").Err())
	m := mover(t, rdb, Options{Back: true})
	if _, err := m.Run(t.Context()); !errors.As(err, new(*store.OutputsLeftError)) || !strings.Contains(err.Error(), "no key was renamed") {
		t.Fatalf("refused with %v", err)
	}
	if mark := m.st.mark.State; rdb.XLen(t.Context(), p.Outbox).Val() != 1 || mark == store.MarkMoving {
		t.Errorf("the outbox has changed, or the app is marked: %q", mark)
	}
	must(t, rdb.XTrimMaxLen(t.Context(), bills, 0).Err())
	must(t, m.emptyOutboxes(t.Context()))
	if n := rdb.XLen(t.Context(), bills).Val(); n != 1 {
		t.Fatalf("%d came", n)
	}
	must(t, m.mark(t.Context()))
	must(t, rdb.XTrimMaxLen(t.Context(), bills, 0).Err())
	wait("7-2") // by a worker that came before the mark, and is gone
	move(t, rdb, Options{Back: true})
	var came []any
	for _, e := range rdb.XRange(t.Context(), plain.Partition("bills", 0), "-", "+").Val() {
		came = append(came, e.Values["data"])
	}
	if len(came) != 1 || came[0] != "7-2" {
		t.Errorf("came: %v", came)
	}
}
