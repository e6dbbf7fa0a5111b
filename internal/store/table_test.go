package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What a commit has set is read row by row, and page by page, with the times of rows that end.
func TestRowsAreRead(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, me := e.Partition("orders", "printer", 0), byPosition(alice)
		e.series(p.Log, 2)
		e.own(p, me)
		table, want := e.Table("orders", "totals", 0), map[string]Row{}
		for i := range 300 {
			r := Row{Value: fmt.Sprint("row ", i), There: true}
			if i%2 == 0 {
				r.Until = 4102444800000 + int64(i) // 2100
			}
			want[fmt.Sprint("key\x00", i)] = r
		}
		changes := &Changes{Tables: []TableChanges{{Table: table, Rows: want}}}
		e.must(e.Commit(e.ctx(), []Commit{{Partition: p, Claim: me, Number: 1, Committed: "1-1", Read: 1, Changes: changes}})[0])
		for _, table.Lasting = range []bool{false, true} {
			found := map[string]Row{}
			for cursor, more := (Cursor{}), true; more; more = cursor != (Cursor{}) {
				page, next, err := e.Page(e.ctx(), table, cursor)
				e.must(err)
				for _, r := range page {
					found[r.Key] = r.Row
				}
				cursor = next
			}
			for key, r := range want {
				if table.Lasting {
					r.Until = 0 // it was not asked for
				}
				equal(t, key, found[key], r)
			}
			equal(t, "rows", len(found), len(want))
		}
		for _, i := range []int{0, 1, 1000} {
			key := fmt.Sprint("key\x00", i)
			r, _, err := e.Row(e.ctx(), e.Table("orders", "totals", 0), key)
			e.must(err)
			equal(t, key, r, want[key])
			r, now, err := e.Row(e.ctx(), table, key)
			e.must(err)
			equal(t, key, r, Row{Value: want[key].Value, There: want[key].There}) // it is Lasting
			if now < 1e12 {
				t.Errorf("the server's clock is %d", now)
			}
		}
	})
}

// A prefix is no glob.
func TestRowsWithAPrefix(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, e *env) {
		of, texts := e.Table("orders", "totals", 0), []string{`a*b`, `ab`, `a[1]`, `a1`, `a?`, `a\x`, `a\\x`, `-^a`}
		for _, key := range texts {
			e.must(e.raw.HSet(e.ctx(), of.Rows, key, "1").Err())
		}
		for _, prefix := range []string{"", "a", `a*`, `a[`, `a?`, `a\`, `a\\`, `-^`, "b"} {
			var got, want []string
			for row, err := range e.RowsWith(e.ctx(), of, prefix) {
				e.must(err)
				got = append(got, row.Key)
			}
			for _, key := range texts {
				if strings.HasPrefix(key, prefix) {
					want = append(want, key)
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			equal(t, "keys with "+prefix, got, want)
		}
	})
}

// A page of large rows has few: a reply of all would hold the server.
func TestPagesOfLargeRowsAreSmall(t *testing.T) {
	t.Parallel()
	e := realEnv(t)
	of, large := e.Table("orders", "totals", 0), strings.Repeat("x", 256<<10)
	for i := range 200 {
		e.must(e.raw.HSet(e.ctx(), of.Rows, fmt.Sprint("key ", i), large).Err())
	}
	seen := map[string]bool{}
	for cursor, more := (Cursor{}), true; more; more = cursor != (Cursor{}) {
		page, next, err := e.Page(e.ctx(), of, cursor)
		e.must(err)
		for _, r := range page {
			seen[r.Key] = true
		}
		if len(page) > rowsPerPage/2 { // 4 are asked for; servers return whole buckets, of a size that chance decides
			t.Errorf("a page of %d rows", len(page))
		}
		cursor = next
	}
	equal(t, "rows", len(seen), 200)
}
