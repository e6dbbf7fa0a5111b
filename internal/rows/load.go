package rows

import (
	"context"

	"github.com/runnel-go/runnel/internal/store"
)

// Load brings all rows into memory, page by page, unless they are beyond the budget. It blocks until that is done, or
// ctx ends, and may be called beside all other methods.
func (t *Table) Load(ctx context.Context) error {
	for ctx.Err() == nil {
		t.mu.Lock()
		forgot := t.forgot
		t.mu.Unlock()
		for cursor := (store.Cursor{}); ; {
			page, next, err := t.Config.Source.Page(t.Config.Place, cursor)
			if err != nil {
				return err
			}
			if !t.fill(page) {
				return nil
			}
			if cursor = next; cursor == (store.Cursor{}) || ctx.Err() != nil {
				break
			}
		}
		t.mu.Lock()
		t.complete = ctx.Err() == nil && !t.over && forgot == t.forgot
		done := t.complete || t.over
		t.mu.Unlock()
		if done {
			return nil
		}
	}
	return ctx.Err()
}

// fill adds rows that are not held, and reports whether the budget allows more.
func (t *Table) fill(page []store.KeyedRow) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, stored := range page {
		if t.over || t.Config.Budget.used.Load() > t.Config.Budget.Most {
			t.over = true
			return false
		}
		if t.rows[stored.Key] == nil {
			r := t.insert(stored.Key, stored.Row)
			if r.Until > 0 {
				t.leaves(r, r.Until)
			}
		}
	}
	return true
}

// Ask has the rows of some keys in memory, in one round trip or few if there are any that are not: for a function that will ask for them.
// An error means that the ownership has ended.
func (t *Table) Ask(keys []string) error {
	var missing []string
	t.mu.Lock()
	if !t.complete {
		seen := make(map[string]bool, len(keys))
		for _, key := range keys {
			if t.rows[key] == nil && !seen[key] {
				seen[key], missing = true, append(missing, key)
			}
		}
	}
	t.mu.Unlock()
	if len(missing) == 0 {
		return nil
	}
	return t.ask(missing)
}

// ask has rows of keys, of which none was held, read from Redis: few at once where those that are held are large.
func (t *Table) ask(keys []string) error {
	t.Config.Budget.Asked.Add(int64(len(keys)))
	for len(keys) > 0 {
		some := keys[:min(t.atOnce(), len(keys))]
		stored, err := t.Config.Source.Rows(t.Config.Place, some)
		if err != nil {
			return err
		}
		t.mu.Lock()
		for i, key := range some {
			if !t.Config.Ends {
				stored[i].Until = 0 // it was set while the table had a TTL
			}
			if t.rows[key] == nil { // the loader may have brought it
				t.insert(key, stored[i])
			}
		}
		t.mu.Unlock()
		keys = keys[len(some):]
	}
	return nil
}

// atOnce is how many rows are read at once, if they are as large as those that are held.
func (t *Table) atOnce() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return store.RowsAtOnce(len(t.rows), t.bytes)
}
