package store

import (
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
)

// kept checks the rows of a table and the times of those that end.
func (w *atWork) kept(what string, want map[string]Row) {
	w.t.Helper()
	got, times := map[string]Row{}, map[string]int64{}
	for _, z := range w.raw.ZRangeWithScores(w.ctx(), w.table.Until, 0, -1).Val() {
		times[z.Member.(string)] = int64(z.Score)
	}
	for key, value := range w.raw.HGetAll(w.ctx(), w.table.Rows).Val() {
		got[key] = Row{Value: value, There: true, Until: times[key]}
		delete(times, key)
	}
	if !maps.Equal(got, want) {
		w.t.Errorf("%s: got %d rows %.300q, want %d: %.300q", what, len(got), fmt.Sprint(got), len(want), fmt.Sprint(want))
	}
	equal(w.t, what+": times of no row", len(times), 0)
}

func TestRowsOfCommits(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		w := e.atWork(0)
		forGood := func(value string) Row { return Row{Value: value, There: true} }
		until := func(value string, ms int64) Row { return Row{Value: value, There: true, Until: ms} }
		number, now := int64(1), int64(0)
		commit := func(rows map[string]Row) {
			t.Helper()
			number++
			ch := w.rows(rows)
			ch.Tables[0].Ended = now
			e.must(e.store(w.next(number, fmt.Sprint("1-", number+1), ch)))
		}
		bytes := make([]byte, 256)
		for i := range bytes {
			bytes[i] = byte(i)
		}
		binary := string(bytes)
		commit(map[string]Row{"old": {}, "gone": {}, "due": {}, "stay": {}, "never there": {}})
		w.kept("all deleted", map[string]Row{})
		equal(t, "keys left", e.raw.Exists(e.ctx(), w.table.Rows, w.table.Until).Val(), 0)
		commit(map[string]Row{binary: forGood(binary), "": until("", 20), "a": until("1", 10), "b": until("1", 10), "c": until("1", 10)})
		commit(map[string]Row{"a": until("2", 30), "b": forGood(""), "c": {}, "d": forGood("1")})
		want := map[string]Row{binary: forGood(binary), "": until("", 20), "a": until("2", 30), "b": forGood(""), "d": forGood("1")}
		w.kept("changed", want)
		now = 19
		commit(nil)
		w.kept("before a time has come", want)
		now = 20
		commit(nil)
		delete(want, "")
		w.kept("once it has", want)
		now = 30
		commit(map[string]Row{"a": until("3", 31), "e": until("late", 29)})
		want["a"] = until("3", 31)
		w.kept("moved later in the commit that would have removed it", want)
		now = 0
		commit(map[string]Row{"d": until("2", 1)})
		want["d"] = until("2", 1)
		w.kept("without a time", want)
	})
}

// More than Lua can put on its stack at once.
func TestManyRowsInOneCommit(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		const n = 5001
		w := e.atWork(0)
		first := map[string]Row{"old": {}, "gone": {}, "due": {}, "stay": {}}
		want := map[string]Row{}
		for i := range n {
			r := Row{Value: fmt.Sprint("row ", i), There: true}
			if i%3 == 0 {
				r.Until = rowsTime + 10
			}
			first[fmt.Sprint(i)], want[fmt.Sprint(i)] = r, r
		}
		e.must(e.store(w.next(2, "1-3", w.rows(first))))
		w.kept("set", want)
		second := map[string]Row{}
		for i := range n {
			second[fmt.Sprint(i)] = Row{Value: "2", There: true, Until: rowsTime + 5}
		}
		e.must(e.store(w.next(3, "1-4", w.rows(second))))
		w.kept("with times", second)
		done := w.rows(nil)
		done.Tables[0].Ended = rowsTime + 5
		e.must(e.store(w.next(4, "1-5", done)))
		equal(t, "rows after a commit that removes some whose time has come", e.raw.HLen(e.ctx(), w.table.Rows).Val(), n-128)
		equal(t, "and their times", e.raw.ZCard(e.ctx(), w.table.Until).Val(), n-128)
		for key := range second {
			second[key] = Row{}
		}
		for i := range n { // as many as are set
			second[fmt.Sprint("new ", i)] = Row{Value: "3", There: true, Until: rowsTime + 99}
		}
		e.must(e.store(w.next(5, "1-6", w.rows(second))))
		maps.DeleteFunc(second, func(_ string, r Row) bool { return !r.There })
		w.kept("replaced", second)
		late := w.rows(map[string]Row{})
		late.Tables[0].Ended = rowsTime + 99
		for i := range n {
			late.Tables[0].Rows[fmt.Sprint("late ", i)] = Row{Value: "4", There: true, Until: rowsTime + 50}
		}
		e.must(e.store(w.next(6, "1-7", late)))
		equal(t, "rows that go with so many that have come", e.raw.HLen(e.ctx(), w.table.Rows).Val(), 2*n-128-n)
	})
}

// Rows of two tables, and of a table without changes, go where they belong.
func TestRowsOfSeveralTables(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		w := e.atWork(0)
		tables := []Table{e.Table("orders", "a", 0), e.Table("orders", "b", 0), e.Table("orders", "c", 0)}
		ch := &Changes{Settled: []string{"1-1"}, Outputs: w.outputs("mails", 0, 1)}
		for i, table := range tables {
			rows := map[string]Row{}
			for n := range i * 2 {
				rows[fmt.Sprint("row ", n)] = Row{Value: fmt.Sprint(i), There: true, Until: int64(n) * (rowsTime + 1)}
			}
			ch.Tables = append(ch.Tables, TableChanges{Table: table, Rows: rows, Ended: rowsTime})
		}
		e.must(e.store(w.next(2, "1-3", ch)))
		for i, table := range tables {
			w.table = table
			w.kept(table.Rows, ch.Tables[i].Rows)
		}
		equal(t, "parked", e.raw.Exists(e.ctx(), w.p.Retry, w.p.Parked).Val(), 0)
		equal(t, "mails", e.texts("mails", 0), []string{"mails0 0"})
	})
}

func TestOutputsOfCommits(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		w := e.atWork(0)
		var sent, others atomic.Int64
		ch := &Changes{}
		add := func(stream string, partition int, sent *atomic.Int64, fields ...string) {
			ch.Outputs = append(ch.Outputs, Output{Stream: stream, Partition: partition, Fields: fields, Sent: sent})
		}
		var want []string
		for i := range 3000 {
			stream := []string{"bills", "mails", "orders"}[i%3]
			add(stream, 3+i%2, &sent, "data", fmt.Sprint(i))
			if i%6 == 1 { // mails, 4
				want = append(want, fmt.Sprint(i))
			}
		}
		wide := make([]string, 4000)
		for i := range wide {
			wide[i] = fmt.Sprint("text ", i/2*(1-i%2), " ", i%2)
		}
		for range 3 {
			add("wide", 0, &others, wide...)
		}
		add("wide", 0, nil, "", "") // without a counter
		add("wide", 0, &others, "data", strings.Repeat("\x00\xff", 100_000))
		e.must(e.store(w.next(2, "1-3", ch)))
		ch.Stored()
		equal(t, "sent", []int64{sent.Load(), others.Load()}, []int64{3000, 4})
		equal(t, "lengths", []int{len(e.texts("bills", 3)), len(e.texts("mails", 4)), len(e.texts("orders", 3)), len(e.texts("orders", 4))}, []int{500, 500, 500, 500})
		equal(t, "in order", e.texts("mails", 4), want)
		found := e.raw.XRange(e.ctx(), e.keys.Partition("wide", 0), "-", "+").Val()
		equal(t, "entries", len(found), 5)
		equal(t, "fields", len(found[1].Values), 2000)
		equal(t, "one of them", fmt.Sprint(found[2].Values[wide[1998]]), wide[1999])
		equal(t, "an empty one", fmt.Sprint(found[3].Values), "map[:]")
		equal(t, "a large one", len(fmt.Sprint(found[4].Values["data"])), 200_000)
	})
}

// A parked event is done with the rows that its attempt has changed, also where the position does not move.
func TestAParkedEventIsDoneWithItsRows(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		w := e.atWork(0)
		e.park(w.p, alice, "1-3")
		both := w.less()
		both.Settled = []string{"1-1", "1-3"}
		one := w.next(2, "1-2", w.less())
		e.must(e.store(one))
		e.must(e.store(one))
		equal(t, "parked", e.raw.HKeys(e.ctx(), w.p.Retry).Val(), []string{"1-3"})
		equal(t, "position", e.at(w.p)[1], "1-2")
		w.kept("rows", map[string]Row{"stay": {Value: "0", There: true, Until: rowsTime + 1}})
		two := w.next(3, "1-3", both)
		two.TakenOut = []string{"1-3"}
		e.must(e.store(two))
		equal(t, "keys of parked events", e.raw.Exists(e.ctx(), w.p.Retry, w.p.Parked).Val(), 0)
		equal(t, "position", e.at(w.p)[1], "1-3")
	})
}
