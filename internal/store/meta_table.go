package store

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/runnel-go/runnel/internal/help"
)

// TableMeta is what the metadata of a stream says of one of its tables.
type TableMeta struct {
	Processor string `json:"processor"`       // that alone changes it
	Codec     string `json:"codec"`           // of the rows
	TTL       int64  `json:"ttl,omitempty"`   // of a row that is not set again, in ms; 0: rows stay, or end where they are told to
	Ends      bool   `json:"ends,omitempty"`  // rows end: there is a TTL, or a function for it
	Local     bool   `json:"local,omitempty"` // a key belongs to the partition that sets it
}

func (m Meta) tableNames() []string { return slices.Sorted(maps.Keys(m.Tables)) }

// Table returns what the metadata says of a table, or an error that lists those of the stream.
func (m Meta) Table(stream, name string) (TableMeta, error) {
	t, ok := m.Tables[name]
	if !ok {
		there := "it has none"
		if len(m.Tables) > 0 {
			there = "it has " + strings.Join(m.tableNames(), ", ")
		}
		return t, fmt.Errorf("stream %s has no table %q; %s; a table is there once a worker has run its processor", stream, name, there)
	}
	return t, nil
}

// TablesOf returns the names of the tables of a processor, sorted.
func (m Meta) TablesOf(processor string) []string {
	return slices.DeleteFunc(m.tableNames(), func(name string) bool { return m.Tables[name].Processor != processor })
}

// mergeTables adds the tables of a process to the stored ones. One without a processor is only read there: it is compared,
// and not added. A worker also sets the TTL.
func mergeTables(stream string, stored, own map[string]TableMeta) (map[string]TableMeta, error) {
	merged := maps.Clone(stored)
	for name, mine := range own {
		there, known := stored[name]
		if !known {
			if mine.Processor != "" {
				if merged == nil {
					merged = map[string]TableMeta{}
				}
				merged[name] = mine
			}
			continue
		}
		for _, f := range []struct{ field, stored, own string }{
			{"processor", there.Processor, cmp.Or(mine.Processor, there.Processor)},
			{"codec", there.Codec, mine.Codec},
			{"local", strconv.FormatBool(there.Local), strconv.FormatBool(mine.Local)},
		} {
			if f.stored != f.own {
				return nil, &TableConflictError{Stream: stream, Table: name, Field: f.field, Stored: f.stored, Own: f.own}
			}
		}
		if mine.Processor != "" {
			merged[name] = mine
		}
	}
	return merged, nil
}

// A TableConflictError reports that the metadata says something else of a table than this process.
type TableConflictError struct {
	Stream, Table, Field string
	Stored, Own          string
}

// Error names the table, both values and the remedy.
func (e *TableConflictError) Error() string {
	return fmt.Sprintf("stream %s: table %s: its metadata says %s %s, this process is set to %s: set it to %s, or give the table another name; `table rm %s/%s` removes a table with its rows; %s",
		e.Stream, e.Table, e.Field, e.Stored, e.Own, e.Stored, e.Stream, e.Table, help.StreamSettings)
}
