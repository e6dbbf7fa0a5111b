package inspect

import (
	"context"
	"maps"
	"slices"

	"github.com/runnel-go/runnel/internal/store"
)

// A TableState is a table as the metadata of its stream declares it, and how much is in it.
type TableState struct {
	Stream    string `json:"stream"`
	Table     string `json:"table"`
	Processor string `json:"processor"` // that alone changes it
	Codec     string `json:"codec"`     // of the rows
	TTL       int64  `json:"ttl"`       // ms that a row stays which is not set again, 0: rows stay
	Local     bool   `json:"local"`     // a key belongs to the partition that has set it
	Rows      int64  `json:"rows"`
	Overdue   int64  `json:"overdue"` // rows whose time has come, and that are still there
	Bytes     int64  `json:"bytes"`   // of Redis' memory, estimated; -1: it does not tell
	Err       string `json:"err,omitempty"`
}

// Tables returns the tables of a stream, by name; those of one processor if that is not "".
func Tables(ctx context.Context, c *store.Client, stream string, m store.Meta, processor string) []TableState {
	var out []TableState
	for _, name := range slices.Sorted(maps.Keys(m.Tables)) {
		t := m.Tables[name]
		if processor != "" && t.Processor != processor {
			continue
		}
		s := TableState{Stream: stream, Table: name, Processor: t.Processor, Codec: t.Codec, TTL: t.TTL, Local: t.Local}
		size, err := c.TableSize(ctx, stream, name, t, m.Partitions)
		if s.Rows, s.Overdue, s.Bytes = size.Rows, size.Overdue, size.Bytes; err != nil {
			s.Err = err.Error()
		}
		out = append(out, s)
	}
	return out
}

// A FoundRow is a row, and where it lies.
type FoundRow struct {
	Partition int
	store.KeyedRow
}

// FindRows returns the rows of a key in these partitions, without those whose time has come by Redis' clock.
func FindRows(ctx context.Context, c *store.Client, stream, table string, m store.TableMeta, key string, partitions []int) (found []FoundRow, err error) {
	for _, n := range partitions {
		place := c.Table(stream, table, n)
		place.Lasting = !m.Ends
		row, now, err := c.Row(ctx, place, key)
		if err != nil {
			return nil, err
		}
		if row.There && (row.Until == 0 || row.Until > now) {
			found = append(found, FoundRow{n, store.KeyedRow{Key: key, Row: row}})
		}
	}
	return found, nil
}
