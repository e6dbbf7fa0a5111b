package store

import (
	"fmt"
	"testing"
)

func TestStep(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		const n = 2*countPage + 10
		var records [][]string
		for i := range n {
			records = append(records, []string{"data", fmt.Sprint(i)})
		}
		appended := e.Append(e.ctx(), []Append{{Log: p.Log, Records: records}})[0]
		e.must(appended.Err)
		ids := append([]string{"0-0"}, appended.IDs...) // the position behind so many entries
		for _, tt := range []struct{ from, by, want int }{
			{0, 0, 0}, {0, 1, 1}, {0, n, n}, {0, n + 5, n}, {3, countPage, 3 + countPage}, {3, 2 * countPage, 3 + 2*countPage}, {n, 1, n},
			{n, -1, n - 1}, {n, -n, 0}, {n, -n - 5, 0}, {n, -countPage, n - countPage}, {n, -2 * countPage, n - 2*countPage}, {1, -1, 0}, {0, -1, 0},
		} {
			got := try(e.Step(e.ctx(), p, ids[tt.from], int64(tt.by))).must(t)
			equal(t, fmt.Sprint(tt.by, " from ", tt.from), got, ids[tt.want])
		}
		// From a position whose entry is gone.
		e.must(e.raw.XDel(e.ctx(), p.Log, ids[5]).Err())
		for by, want := range map[int64]int{1: 6, -1: 3, -2: 2} {
			got := try(e.Step(e.ctx(), p, ids[5], by)).must(t)
			equal(t, fmt.Sprint(by, " from a gap"), got, ids[want])
		}
		got := try(e.Step(e.ctx(), e.Partition("nothing", "printer", 0), "0-0", 3)).must(t)
		equal(t, "in no partition", got, "0-0")
	})
}
