package web

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
)

// listedTables are the tables of a processor.
type listedTables struct {
	Tables []inspect.TableState `json:"tables"`
	Rows   []listedRow          `json:"rows"` // of the requested key
}

type listedRow struct {
	Table     string `json:"table"`
	Partition int    `json:"partition"`
	Until     int64  `json:"until,omitempty"` // ms, when it ends
	Record    *text  `json:"record,omitempty"`
	Err       string `json:"err,omitempty"` // why there is no record
}

// tables lists the tables of a processor and, of a key, their rows.
func (d *dashboard) tables(ctx context.Context, c *store.Client, r *http.Request) (any, error) {
	at, err := placeOf(ctx, c, r.URL.Query().Get("processor"))
	if err != nil {
		return nil, err
	}
	l := listedTables{Tables: append([]inspect.TableState{}, inspect.Tables(ctx, c, at.stream, at.meta, at.processor)...), Rows: []listedRow{}}
	key := keyOf(r)
	if key == nil {
		return l, nil
	}
	look, err := d.reading(at.stream, at.meta)
	if err != nil {
		return nil, err
	}
	for _, table := range l.Tables {
		found, err := inspect.FindRows(ctx, c, at.stream, table.Table, at.meta.Tables[table.Table], *key, look.RowPartitions(table.Table, *key))
		if err != nil {
			return nil, err
		}
		for _, row := range found {
			one := listedRow{Table: table.Table, Partition: row.Partition, Until: row.Until}
			one.Record, one.Err = look.row(ctx, table.Table, row.Value)
			l.Rows = append(l.Rows, one)
		}
	}
	return l, nil
}

// row returns a row of a table as record does a record.
func (r *reading) row(ctx context.Context, table, data string) (*text, string) {
	return r.shown(ctx, recordAlone, func() (json.RawMessage, error) { return r.Row(table, data) })
}
