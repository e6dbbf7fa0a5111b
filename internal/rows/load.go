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
		for cursor := uint64(0); ; {
			page, next, err := t.Config.Source.Page(t.Config.Place, cursor)
			if err != nil {
				return err
			}
			if !t.fill(page) {
				return nil
			}
			if cursor = next; cursor == 0 || ctx.Err() != nil {
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
