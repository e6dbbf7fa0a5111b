package store

import (
	"errors"
	"fmt"
	"testing"

	"github.com/runnel-go/runnel/internal/keys"
)

// All that waits in outboxes comes though their partitions have no owner; of what cannot come the error tells where it is for.
func TestOutboxesAreEmptied(t *testing.T) {
	t.Parallel()
	tagged(t, func(t *testing.T, e *env) {
		s := e.sender("printer", alice)
		s.emit(1, 2, 1)
		s.emit(2)
		all := e.Partitions("orders", "printer", []int{0, 1, 2})
		if err := e.Forget(e.ctx(), s.p, true); !errors.Is(err, ErrHeld) {
			t.Errorf("under an owner: %v", err)
		}
		e.must(e.raw.Del(e.ctx(), s.p.Lock).Err())
		if err := e.Forget(e.ctx(), s.p, true); !errors.Is(err, ErrOutputs) || e.raw.Exists(e.ctx(), s.p.Own).Val() != 1 {
			t.Errorf("with outputs: %v", err)
		}
		locked := e.keys.Partition("bills", 1)
		e.must(e.raw.Set(e.ctx(), locked, "no stream", 0).Err())
		came, err := e.EmptyOutboxes(e.ctx(), all)
		left := (*OutputsLeftError)(nil)
		if !errors.As(err, &left) || left.To != (StreamPartition{"bills", 1}) || left.Count != 4 || left.Err == nil {
			t.Errorf("brought %d, and %v", came, err)
		}
		equal(t, "came meanwhile", []int64{came, int64(len(e.came(2)))}, []int64{2, 2})
		e.must(e.raw.Del(e.ctx(), locked).Err())
		equal(t, "came", try(e.EmptyOutboxes(e.ctx(), all)).must(t), 2)
		equal(t, "in order", e.came(1), []string{fmt.Sprint(s.epoch, " 1 1"), fmt.Sprint(s.epoch, " 1 1")})
		equal(t, "again", try(e.EmptyOutboxes(e.ctx(), all)).must(t), 0)
		e.must(e.Forget(e.ctx(), s.p, true))
		equal(t, "the outbox", e.raw.Exists(e.ctx(), s.p.Outbox).Val(), 0)
		e.Uses(Tables)
		e.must(e.DropStream(e.ctx(), "bills", Meta{Partitions: 3}))
		equal(t, "of a target that is removed", len(e.raw.Keys(e.ctx(), "*bills*").Val()), 0)
	})
}

// The metadata name the processors that may have outboxes, until they are removed.
func TestMetaNamesAtomicProcessors(t *testing.T) {
	t.Parallel()
	tagged(t, func(t *testing.T, e *env) {
		for _, one := range []Meta{{Processors: []string{"printer", "mailer"}, Atomic: []string{"printer"}}, {Processors: []string{"biller"}, Atomic: []string{"biller"}}, {}} {
			one.Partitions, one.Codec, one.Partitioner = 3, "json", "xxh64"
			try(e.EnsureMeta(e.ctx(), "orders", one)).must(t)
		}
		named := func() []string {
			m, _, err := e.LoadMeta(e.ctx(), "orders")
			e.must(err)
			return m.Owners(keys.MustKind("out"))
		}
		equal(t, "atomic", named(), []string{"biller", "printer"})
		try(e.Unregister(e.ctx(), "orders", "printer")).must(t)
		equal(t, "atomic", named(), []string{"biller"})
	})
}
