package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/runnel-go/runnel/internal/store"
)

// A RemovedTable lists what was or would be removed of a table.
type RemovedTable struct {
	Stream    string `json:"stream"`
	Table     string `json:"table"`
	Processor string `json:"processor"` // that had it
	Rows      int64  `json:"rows"`
}

// RemoveTable removes a table of a stream with its rows. Of a processor that still declares it, it begins anew.
// It returns an error, and removes nothing, while a worker runs the processor or owns a partition of it. It may be
// repeated after an error: the table is there until all of its rows are gone.
func (c *Client) RemoveTable(ctx context.Context, stream, table string, opts *RemoveOptions) (RemovedTable, error) {
	gone := RemovedTable{Stream: stream, Table: table}
	client, m, err := c.meta(ctx, stream)
	if err != nil {
		return gone, err
	}
	t, err := m.Table(stream, table)
	if err != nil {
		return gone, err
	}
	gone.Processor = t.Processor
	o := &owning{c: &c.core, client: client, stream: stream, processor: t.Processor}
	if opts != nil && opts.DryRun {
		gone.Rows, err = rowsOf(ctx, client, stream, m, table)
		return gone, errors.Join(o.unchanged(ctx), err)
	}
	registered := slices.Contains(m.Processors, t.Processor)
	err = o.run(ctx, m.Numbers(), "removed rows of", func(at store.Partition) error {
		if registered { // else what is left of an owner has no ownership to commit in
			if _, err := client.Takeover(ctx, at, o.claim, "", 0); err != nil {
				return err
			}
		}
		n, err := client.ClearTable(ctx, at, o.claim, client.Table(stream, table, at.Number))
		gone.Rows += n
		return err
	})
	if err != nil {
		return gone, err
	}
	// A worker that has started meanwhile has compared its table with what is there.
	if err := o.notRun(ctx); err != nil {
		return gone, fmt.Errorf("%w: the rows of table %s are removed, the table is not", err, table)
	}
	_, err = client.DropTable(ctx, stream, table)
	return gone, err
}

// rowsOf returns how many rows tables have together.
func rowsOf(ctx context.Context, client *store.Client, stream string, m store.Meta, tables ...string) (rows int64, err error) {
	for _, name := range tables {
		size, err := client.TableSize(ctx, stream, name, m.Tables[name], m.Partitions)
		if err != nil {
			return rows, err
		}
		rows += size.Rows
	}
	return rows, nil
}
