// Reconcile brings DNS records to their wanted state. The records are in a store of the app's own, a map
// here; Redis has only who is visited when.
//
//	go run ./examples/reconcile worker --dev
package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/stage"
)

// A Record is what is wanted, and what the provider has.
type Record struct{ Name, Want, Is string }

// A Table is a stage.Store: a table with a version in each row.
type Table struct {
	mu   sync.Mutex
	rows map[string]stage.Entity[Record]
}

// Load returns the rows that there are.
func (t *Table) Load(_ context.Context, names []string) (found []stage.Entity[Record], err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range names {
		if row, ok := t.rows[name]; ok {
			found = append(found, row)
		}
	}
	return found, nil
}

// Save updates a row that has the version.
func (t *Table) Save(_ context.Context, e stage.Entity[Record]) (version int64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows[e.Value.Name].Version != e.Version {
		return 0, stage.ErrConflict
	}
	e.Version++
	t.rows[e.Value.Name] = e
	return e.Version, nil
}

// Delete deletes a row that has the version.
func (t *Table) Delete(_ context.Context, name string, version int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows[name].Version != version {
		return stage.ErrConflict
	}
	delete(t.rows, name)
	return nil
}

// Want changes what is wanted, as a page of the app would.
func (t *Table) Want(name, want string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	row := t.rows[name]
	row.Value.Name, row.Value.Want = name, want
	row.Version++
	t.rows[name] = row
}

func main() {
	app, table := runnel.New("dns", nil), &Table{rows: map[string]stage.Entity[Record]{}}
	records := stage.NewExternal(app, "records", func(r Record) string { return r.Name }, table, nil)

	records.Stage("reconcile", func(r Record) bool { return r.Is != r.Want }, func(ctx context.Context, r *Record) (stage.Result, error) {
		slog.InfoContext(ctx, "at the provider", "record", r.Name, "was", r.Is, "is", r.Want)
		r.Is = r.Want
		return stage.Updated, nil
	}, nil)

	app.Every("wish", 500*time.Millisecond, func(ctx context.Context) error {
		name := fmt.Sprintf("host%d.example.org", rand.IntN(3))
		table.Want(name, fmt.Sprintf("192.0.2.%d", rand.IntN(256)))
		return records.Touch(ctx, name) // behind the commit
	}, &runnel.TaskOptions{Leader: true})
	cli.Run(app)
}
