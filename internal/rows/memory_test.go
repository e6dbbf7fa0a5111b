package rows

import (
	"fmt"
	"testing"

	"github.com/runnel-go/runnel/internal/store"
)

// hungry is a table whose rows end, and a function that sets a row of it for each event.
func hungry(most int64) (t *Table, set func(now int64, key string, until int64)) {
	p := &Partition{}
	t = p.Add(Config{
		Name: "t", Ends: true, Source: &redis{rows: map[string]store.Row{}}, Budget: &Budget{Most: most},
		Encode: func(v any) (string, error) { return v.(string), nil }, Decode: func(s string) (any, error) { return s, nil },
	})
	return t, func(now int64, key string, until int64) {
		p.Mark()
		p.Begin(fmt.Sprint(now, "-0"))
		t.Set(key, "x", until)
		if err := p.Seal(); err != nil {
			panic(err)
		}
		p.End()
		p.Take(&store.Changes{})
		p.Confirmed(p.Taken())
	}
}

// Rows that leave memory for the budget are not held for the time at which they end.
func TestRowsBeyondTheBudgetAreNotHeld(t *testing.T) {
	table, set := hungry(10_000)
	for n := range 5000 {
		set(int64(1000+n), fmt.Sprint("k", n%1000), int64(3_600_000+n))
	}
	if len(table.leaving) > 0 || len(table.rows) > 1000 {
		t.Errorf("%d rows are held, and %d for when they end", len(table.rows), len(table.leaving))
	}
}

// A row that ends late keeps none in memory that have ended.
func TestALateEndHoldsNoOthers(t *testing.T) {
	table, set := hungry(1 << 30)
	if err := table.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	set(1000, "late", 1<<50)
	for n := range 5000 {
		set(int64(1000+n), fmt.Sprint("k", n), int64(1010+n))
	}
	if len(table.rows) > 20 {
		t.Errorf("%d rows are held", len(table.rows))
	}
}

// Keys without a row that are looked up take no memory beyond the budget, and none at all where all rows are there.
func TestLookingUpTakesNoMemory(t *testing.T) {
	for _, loaded := range []bool{false, true} {
		table, _ := hungry(100_000)
		if loaded {
			if err := table.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for n := range 5000 {
			table.p.Mark()
			table.p.Begin(fmt.Sprint(1000+n, "-0"))
			table.Get(fmt.Sprint("k", n))
			table.p.End()
			table.p.Drop()
		}
		if used := table.Config.Budget.Used(); used > 300_000 || loaded && used > 0 || table.Complete() != loaded {
			t.Errorf("loaded %v: %d bytes are held, complete %v", loaded, used, table.Complete())
		}
	}
}
