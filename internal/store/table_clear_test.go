package store

import (
	"errors"
	"testing"
)

// counted is a partition with rows a and b, of which b ends, that alice has committed and, as she thinks, owns.
func counted(e *env) (p Partition, t Table) {
	e.t.Helper()
	p, t = e.Partition("orders", "printer", 0), e.Table("orders", "totals", 0)
	e.series(p.Log, 3)
	e.own(p, byPosition(alice))
	e.must(e.change(p, byPosition(alice), 1, "1-1", t))
	return p, t
}

func (e *env) change(p Partition, by Claim, number int64, committed string, t Table) error {
	rows := map[string]Row{"a": {Value: "1", There: true}, "b": {Value: "2", There: true, Until: 5e12}}
	return e.Commit(e.ctx(), []Commit{{Partition: p, Claim: by, Number: number, Committed: committed, Read: -1, Changes: &Changes{Tables: []TableChanges{{Table: t, Rows: rows}}}}})[0]
}

// rows returns how many rows a part of a table has, and how many of them end.
func (e *env) rows(t Table) []int64 {
	e.t.Helper()
	return []int64{try(e.RowsOf(e.ctx(), t)).must(e.t), e.raw.ZCard(e.ctx(), t.Until).Val()}
}

// Rows go in the step that moves the position, and a former owner writes none behind it.
func TestResetClearsRows(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, table := counted(e)
		_, err := e.Reset(e.ctx(), p, byPosition(bob), "0-0", table)
		equal(t, "of one who does not own it", errors.Is(err, ErrFenced), true)
		equal(t, "rows", e.rows(table), []int64{2, 1})
		e.own(p, tenure(bob, 1))
		for range 2 { // a repetition changes nothing
			equal(t, "floor", try(e.Reset(e.ctx(), p, tenure(bob, 1), "0-0", table)).must(t), "0-0")
			equal(t, "rows", e.rows(table), []int64{0, 0})
		}
		e.must(e.Unlock(e.ctx(), p, tenure(bob, 1)))
		if err := e.change(p, byPosition(alice), 2, "1-2", table); !errors.Is(err, ErrFenced) {
			t.Errorf("a former owner: %v", err)
		}
		equal(t, "rows", e.rows(table), []int64{0, 0})
	})
}

func TestForgetRemovesRows(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, table := counted(e)
		if err := e.Forget(e.ctx(), p, false, table); !errors.Is(err, ErrHeld) {
			t.Errorf("while it is owned: %v", err)
		}
		equal(t, "rows", e.rows(table), []int64{2, 1})
		e.must(e.raw.Del(e.ctx(), p.Lock).Err())
		e.must(e.Forget(e.ctx(), p, false, table))
		if err := e.change(p, byPosition(alice), 2, "1-2", table); !errors.Is(err, ErrFenced) {
			t.Errorf("a former owner: %v", err)
		}
		equal(t, "rows", e.rows(table), []int64{0, 0})
	})
}

// Only who has the lock clears a table; the metadata has it until it is dropped.
func TestATableIsCleared(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, table := counted(e)
		_, err := e.ClearTable(e.ctx(), p, tenure(bob, 1), table)
		equal(t, "of one without the lock", errors.Is(err, ErrFenced), true)
		e.own(p, tenure(bob, 1))
		equal(t, "cleared", try(e.ClearTable(e.ctx(), p, tenure(bob, 1), table)).must(t), int64(2))
		equal(t, "rows", e.rows(table), []int64{0, 0})

		_, err = e.EnsureMeta(e.ctx(), "orders", Meta{Partitions: 1, Tables: map[string]TableMeta{"totals": {Processor: "printer"}, "seen": {Processor: "mailer"}}})
		e.must(err)
		for _, want := range []bool{true, false} {
			equal(t, "dropped", try(e.DropTable(e.ctx(), "orders", "totals")).must(t), want)
		}
		m, _, err := e.LoadMeta(e.ctx(), "orders")
		e.must(err)
		equal(t, "left", m.tableNames(), []string{"seen"})
		equal(t, "of the mailer", m.TablesOf("mailer"), []string{"seen"})
	})
}
