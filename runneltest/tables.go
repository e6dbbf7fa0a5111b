package runneltest

import (
	"context"
	"maps"

	"github.com/runnel-go/runnel/internal/rows"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/worker"
)

// tables are the rows of a processor's tables, in memory, and where what it emits goes.
type tables struct {
	rows   *rows.Partition
	stored map[string]map[string]store.Row // by table and key
	rec    *recorder
}

// newTables returns nil for a processor that is not atomic.
func newTables(p *worker.Processor, rec *recorder) *tables {
	if !p.Atomic {
		return nil
	}
	t := &tables{rows: &rows.Partition{AnyKey: true}, stored: map[string]map[string]store.Row{}, rec: rec}
	for _, config := range p.Tables {
		t.stored[config.Name] = map[string]store.Row{}
		config.Place, config.Source = store.Table{Rows: config.Name}, t
		t.rows.Add(config)
	}
	return t
}

// Row is rows.Source.Row.
func (t *tables) Row(of store.Table, key string) (store.Row, error) {
	return t.stored[of.Rows][key], nil
}

// Page is rows.Source.Page: all rows are on one.
func (t *tables) Page(of store.Table, _ uint64) (page []store.KeyedRow, next uint64, err error) {
	for key, row := range t.stored[of.Rows] {
		page = append(page, store.KeyedRow{Key: key, Row: row})
	}
	return page, 0, nil
}

// Reaches is worker.Source.Reaches.
func (s *source) Reaches(int) bool { return true }

// commit stores what the iteration that ends has changed.
func (t *tables) commit() {
	if t == nil {
		return
	}
	c := &store.Changes{}
	t.rows.Take(c)
	for _, changed := range c.Tables {
		stored := t.stored[changed.Table.Rows]
		for key, row := range changed.Rows {
			stored[key] = row
		}
		maps.DeleteFunc(stored, func(_ string, r store.Row) bool { return !r.There || r.Until > 0 && r.Until <= c.Time })
	}
	for _, o := range c.Outputs {
		t.rec.Append(context.Background(), []store.Append{{Stream: o.Stream, Partition: o.Partition, Records: [][]string{o.Fields}}})
	}
	t.rows.Confirmed(t.rows.Taken())
}
