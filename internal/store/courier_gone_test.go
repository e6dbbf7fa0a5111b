package store

import (
	"strings"
	"testing"
	"time"
)

// What was emitted to a partition that its stream does not have any more waits: no processor would read it there.
func TestATargetThatIsNoMore(t *testing.T) {
	t.Parallel()
	tagged(t, func(t *testing.T, e *env) {
		meta := Meta{Partitions: 2, Codec: "json", Partitioner: "xxh64"}
		try(e.EnsureMeta(e.ctx(), "bills", meta)).must(t)
		s := e.sender("printer", alice)
		s.emit(1, 2, 3)
		var told []error
		c := e.NewCourier(s.p)
		c.Failed = func(to StreamPartition, err error) {
			if to.Partition > 1 {
				told = append(told, err)
			}
		}
		for i := 0; i < 1000 && len(told) < 4; i++ {
			try2(c.Round(e.ctx())).must(t)
			time.Sleep(time.Millisecond)
		}
		equal(t, "came", []int{len(e.came(1)), len(e.came(2)), len(e.came(3))}, []int{1, 0, 0})
		equal(t, "waits", c.Carries(), 2)
		if want := "of stream bills: the stream was made anew, and has 2 partitions"; len(told) == 0 || !strings.Contains(told[0].Error(), want) {
			t.Fatalf("told %v, want %q", told, want)
		}
		e.must(e.raw.Del(e.ctx(), e.keys.Meta("bills")).Err())
		meta.Partitions = 4
		other := e.taggedClient(e.raw.Options().Addr)
		try(other.EnsureMeta(e.ctx(), "bills", meta)).must(t)
		e.carry(other.NewCourier(s.p)) // which has not heard of the old ones
		equal(t, "came", []int{len(e.came(1)), len(e.came(2)), len(e.came(3))}, []int{1, 1, 1})
	})
}
