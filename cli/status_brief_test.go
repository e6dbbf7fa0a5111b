package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/store"
)

// `status` of a whole app takes ten lines, with what needs attention first.
func TestStatusOfAnAppTakesTenLines(t *testing.T) {
	s := newShop(t, nil)
	s.untyped("status").want(t, 0, "app shop at "+strings.TrimPrefix(s.url, "redis://")+": 0 streams, 0 processors, 0 workers, leader -\na stream is there once", "")
	s.registered()
	s.attended()
	s.untyped("status").matches(t, `^app shop at \S+: 1 stream, 1 processor, 1 worker, leader -
lag 0, oldest unacked event -; 0 delayed, 0 parked, 0 dead, 0 lost
PROCESSOR +WORKERS +OWNED +LAG +AGE +PARKED +DEAD +STATE
orders/printer +1 +0 of \d+ +0 +- +0 +0 +\d+ no owner
nothing is wrong
more: `)
	c := s.client()
	for i := range 40 {
		meta := metaOf("a", "b")
		meta.Partitions = 3
		_, err := c.EnsureMeta(t.Context(), fmt.Sprint("s", i), meta)
		if err != nil {
			t.Fatal(err)
		}
	}
	p := c.Partition("s7", "b", 2)
	own := store.Claim{Executor: "aaaaaaaaaaaaaaaa", Number: 1}
	for _, step := range []func() error{
		func() error { return c.Lock(t.Context(), p, own, 1<<40, 0) },
		func() error { _, err := c.Takeover(t.Context(), p, own, "", 0); return err },
		func() error {
			return c.Quarantine(t.Context(), p, own, store.Quarantine{Reason: "no ink", Event: "5-0", Worker: "w1", At: 1767225600123})
		},
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	r := s.untyped("status")
	r.want(t, 0, "41 streams, 81 processors", "")
	if n := strings.Count(r.out, "\n"); n > 10 {
		t.Errorf("%d lines:\n%s", n, r.out)
	}
	r.matches(t, `(?m)^s7/b .* 2 no owner, 1 quarantined$`, `(?m)^and 78 other processors: processor ls lists them$`, `(?m)^and \d+ other findings: check lists them$`)
	if at := strings.Index(r.out, "s7/b"); at < 0 || at > strings.Index(r.out, "orders/printer") && strings.Contains(r.out, "orders/printer") {
		t.Errorf("the quarantined processor is not first:\n%s", r.out)
	}
	// An unreadable partition is reported beside the others.
	key := "__strm:shop.s3.0"
	s.rdb.Set(t.Context(), key, "x", 0)
	s.untyped("status").want(t, 0, "cannot be looked at", "")
	s.untyped("status").matches(t, `(?m)^lag >0, oldest unacked event -; >0 delayed, >0 parked, >0 dead, >0 lost$`)
}
