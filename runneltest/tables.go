package runneltest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/rows"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/worker"
)

// SetRows lets the run of a script begin with rows, as if they had been set when its first
// event was appended. It adds to earlier calls, and returns s. A row that cannot be encoded,
// and a table that the processor does not have, are fatal to the test.
//
// Tables are in memory, and their time is that of the events, which Appended sets: a row
// with a TTL ends by that, and not by Wait. All events of a script are in one partition; a row
// that an iteration reads or changes must have a key that belongs to the partition in which
// an event of it would be, by its own key.
//
// What the function changes in a row without Set is an error of the test, once an iteration
// with the row has succeeded: a worker would keep the change in its memory, and lose it.
func SetRows[V, T any](s *Script[T], table *runnel.Table[V], rows map[string]V) *Script[T] {
	s.t.Helper()
	app, stream, name := appview.TableOf(table)
	if app != any(s.stream.App()) || stream != s.stream.Name() {
		s.t.Fatalf("runneltest: table %s is of stream %s, not of %s", name, stream, s.stream.Name())
	}
	given := givenRows{name, map[string]any{}}
	for key, row := range rows {
		given.values[key] = row
	}
	s.rows = append(s.rows, given)
	return s
}

// Rows returns the rows of a table at the end of a run, by key, as they are committed: what
// an iteration changes that fails, or that the partition is lost in, is not there, nor are
// rows that have ended, once their OnExpire has succeeded if there is one. A table that the processor does not have is fatal to t.
func Rows[V any](t testing.TB, r *Result, table *runnel.Table[V]) map[string]V {
	t.Helper()
	app, stream, name := appview.TableOf(table)
	config := r.tables.config(name)
	if config == nil || app != r.tables.app || stream != r.tables.stream {
		t.Fatalf("runneltest: table %s of stream %s is not among the Tables of the processor", name, stream)
	}
	out := map[string]V{}
	for key, row := range r.tables.stored[name] {
		if row.Until > 0 && row.Until <= r.tables.rows.Now() && !config.Calls {
			continue
		}
		value, err := config.Decode(row.Value)
		if err != nil {
			t.Fatalf("runneltest: table %s: decode the row of key %q: %v", name, key, err)
		}
		out[key] = value.(V)
	}
	return out
}

// givenRows are rows that a script begins with.
type givenRows struct {
	table  string
	values map[string]any
}

// giveRows stores the rows that the script begins with.
func (s *Script[T]) giveRows(in *tables) {
	s.t.Helper()
	var began int64
	if first := slices.IndexFunc(s.steps, func(st step) bool { return st.id != "" }); first >= 0 {
		began = entryid.Millis(s.steps[first].id)
	}
	for _, given := range s.rows {
		config := in.config(given.table)
		if config == nil {
			s.t.Fatalf("runneltest: table %s is not among the Tables of processor %s", given.table, s.processor)
		}
		ttl := in.rec.streams[s.stream.Name()].Meta.Tables[given.table].TTL
		for key, value := range given.values {
			data, err := config.Encode(value)
			if err != nil {
				s.t.Fatalf("runneltest: table %s: encode the row of key %q: %v", given.table, key, err)
			}
			row := store.Row{Value: data, There: true}
			if ttl > 0 {
				row.Until = began + ttl
			}
			in.stored[given.table][key] = row
		}
	}
}

// tables are the rows of a processor's tables, in memory, and where what it emits goes.
type tables struct {
	t       testing.TB
	app     any
	stream  string
	configs []rows.Config
	rows    *rows.Partition
	stored  map[string]map[string]store.Row // by table and key
	altered []string                        // rows that were changed in place
	rec     *recorder
}

// newTables returns nil for a processor that is not atomic.
func newTables(t testing.TB, p *worker.Processor, rec *recorder) *tables {
	if !p.Atomic {
		return nil
	}
	in := &tables{t: t, stream: p.Stream, configs: p.Tables, rows: &rows.Partition{OfEvents: true}, stored: map[string]map[string]store.Row{}, rec: rec}
	for _, config := range p.Tables {
		in.stored[config.Name] = map[string]store.Row{}
		config.Place, config.Source = store.Table{Rows: config.Name}, in
		in.rows.Add(config)
	}
	return in
}

// config returns that of a table, nil for none that the processor has.
func (t *tables) config(name string) *rows.Config {
	if t == nil {
		return nil
	}
	for i := range t.configs {
		if t.configs[i].Name == name {
			return &t.configs[i]
		}
	}
	return nil
}

// Rows is rows.Source.Rows.
func (t *tables) Rows(of store.Table, keys []string) (found []store.Row, err error) {
	for _, key := range keys {
		found = append(found, t.stored[of.Rows][key])
	}
	return found, nil
}

// Page is rows.Source.Page: all rows are on one.
func (t *tables) Page(of store.Table, _ store.Cursor) (page []store.KeyedRow, next store.Cursor, err error) {
	for key, row := range t.stored[of.Rows] {
		page = append(page, store.KeyedRow{Key: key, Row: row})
	}
	return page, store.Cursor{}, nil
}

// Ends is rows.Source.Ends.
func (t *tables) Ends(of store.Table, most int64) (ends []store.End, err error) {
	for key, row := range t.stored[of.Rows] {
		if row.Until > 0 {
			ends = append(ends, store.End{At: row.Until, Key: key})
		}
	}
	slices.SortFunc(ends, func(a, b store.End) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Key, b.Key)) })
	return ends[:min(int64(len(ends)), most)], nil
}

// Reach is worker.Source.Reach.
func (s *source) Reach(context.Context, store.StreamPartition) error { return nil }

// commit stores what the iteration that ends has changed.
func (t *tables) commit() {
	t.rows.Altered(func(table, key string) {
		if row := fmt.Sprintf("table %s: the row of key %q", table, key); !slices.Contains(t.altered, row) {
			t.altered = append(t.altered, row)
			t.t.Errorf("runneltest: %s was changed in place; only what is Set is stored", row)
		}
	})
	c := &store.Changes{}
	t.rows.Take(c)
	for _, changed := range c.Tables {
		stored := t.stored[changed.Table.Rows]
		maps.Copy(stored, changed.Rows)
		maps.DeleteFunc(stored, func(_ string, r store.Row) bool { return !r.There || r.Until > 0 && r.Until <= changed.Ended })
	}
	for _, o := range c.Outputs {
		t.rec.emit(o)
	}
	t.rows.Confirmed(t.rows.Taken())
}
