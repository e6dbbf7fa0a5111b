package rows

import (
	"container/heap"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/runnel-go/runnel/internal/store"
)

// A Source reads committed rows. Its methods block; an error means that the ownership has ended.
type Source interface {
	// Rows returns the rows of some keys, in their order.
	Rows(t store.Table, keys []string) ([]store.Row, error)
	Page(t store.Table, cursor store.Cursor) (rows []store.KeyedRow, next store.Cursor, err error)

	// Ends returns when rows end, at most so many of the first ones, once all that was done before is committed.
	Ends(t store.Table, most int64) ([]store.End, error)
}

// A Config says what a table is.
type Config struct {
	Name   string
	Index  int // among the processor's tables
	Place  store.Table
	Ends   bool // rows may end
	Calls  bool // a function is called for rows that end
	Encode func(value any) (string, error)
	Decode func(data string) (any, error)
	Source Source
	Budget *Budget
}

// A Budget bounds the bytes of a table's rows in the memory of a worker. A partition that finds it used up forgets what
// is committed, and asks Redis from then on for what it does not hold.
type Budget struct {
	Most int64
	used atomic.Int64

	Asked   atomic.Int64 // rows that Redis was asked for, since they were not in memory
	Written atomic.Int64 // rows that were set or deleted in commits, each once in a commit
	Kept    atomic.Int64 // rows that stay, since the function for their end has failed
}

// Used returns the bytes in memory.
func (b *Budget) Used() int64 { return b.used.Load() }

// rowOverhead is about what a row takes in memory beside its key and its encoded value.
const rowOverhead = 160

// A Row is a row in memory, or that there is none.
type Row struct {
	store.Row
	key      string
	table    *Table
	value    any
	known    bool  // value is decoded
	unsealed bool  // value is newer than Row.Value
	changed  bool  // and not taken
	taken    int64 // number of the last changes that it was in
	mark     int64 // see Partition.see
	size     int64 // as counted
	leaves   bool  // in leaving
}

// A Table is the part of a table in one partition. Its methods are for the function's goroutine, except Load.
type Table struct {
	Config    Config // is not changed
	p         *Partition
	confirmed atomic.Int64
	ends      ends

	mu       sync.Mutex
	rows     map[string]*Row
	complete bool  // what is not in rows is not in Redis
	over     bool  // the budget is used up: never complete again
	forgot   int   // times that a row was forgotten
	bytes    int64 // of rows
	kept     int64 // after it was dropped last
	leaving  leaving
}

// left is when a row will have left the table: it ends, or was deleted.
type left struct {
	row *Row
	at  int64
}

// leaving is a heap of them, by time.
type leaving []left

func (h leaving) Len() int           { return len(h) }
func (h leaving) Less(i, j int) bool { return h[i].at < h[j].at }
func (h leaving) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *leaving) Push(e any)        { *h = append(*h, e.(left)) }
func (h *leaving) Pop() any {
	last := (*h)[len(*h)-1]
	*h = slices.Delete(*h, len(*h)-1, len(*h)) // so that the row is not held
	return last
}

// Add adds a table to the partition.
func (p *Partition) Add(cfg Config) *Table {
	cfg.Index = len(p.Tables)
	t := &Table{Config: cfg, p: p, rows: map[string]*Row{}}
	t.ends = ends{t: t, least: map[string]int64{}, known: noEnds}
	p.Tables = append(p.Tables, t)
	return t
}

// find returns a row of any state, from Redis if it is not held.
func (t *Table) find(key string) *Row {
	t.mu.Lock()
	r, complete := t.rows[key], t.complete
	t.mu.Unlock()
	if r != nil {
		return r
	}
	if !complete {
		if err := t.ask([]string{key}); err != nil {
			panic(Failure{err})
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if r = t.rows[key]; r == nil {
		r = t.insert(key, store.Row{})
	}
	return r
}

// Complete reports whether all rows are in memory.
func (t *Table) Complete() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.complete
}

// insert is called under the mutex.
func (t *Table) insert(key string, stored store.Row) *Row {
	r := &Row{Row: stored, key: key, table: t}
	t.rows[key] = r
	t.count(r)
	return r
}

// count counts the size of a row that is new or was changed, under the mutex.
func (t *Table) count(r *Row) {
	size := int64(len(r.key)+len(r.Value)) + rowOverhead
	t.bytes += size - r.size
	t.Config.Budget.used.Add(size - r.size)
	r.size = size
}

// there reports whether a row is there at the partition's time. One that a function is called for is there until it was.
func (t *Table) there(r *Row) bool {
	return r.There && (r.Until == 0 || r.Until > t.p.now || t.Config.Calls)
}

// Get returns the value of a row, which must not be changed but by Set. It panics with a Failure.
func (t *Table) Get(key string) (value any, ok bool) {
	r := t.find(key)
	t.p.see(r, false)
	if !t.there(r) {
		return nil, false
	}
	return t.decoded(r), true
}

func (t *Table) decoded(r *Row) any {
	value, err := r.decode()
	if err != nil {
		panic(Failure{err})
	}
	return value
}

func (r *Row) decode() (any, error) {
	if !r.known {
		value, err := r.table.Config.Decode(r.Value)
		if err != nil {
			return nil, &DecodeError{Table: r.table.Config.Name, Key: r.key, Err: err}
		}
		r.value, r.known = value, true
	}
	return r.value, nil
}

// Set sets a row, until a time in ms or, with 0, for good.
func (t *Table) Set(key string, value any, until int64) {
	t.change(key, store.Row{There: true, Until: until}, value)
}

// Keep lets a row that is there stay for good.
func (t *Table) Keep(key string) {
	r := t.find(key)
	t.p.see(r, false)
	r.Until, r.changed = 0, true
}

// Delete deletes a row.
func (t *Table) Delete(key string) { t.change(key, store.Row{}, nil) }

func (t *Table) change(key string, to store.Row, value any) {
	t.mu.Lock()
	r, blind := t.rows[key], false
	if r == nil {
		r, blind = t.insert(key, store.Row{}), !t.complete
	}
	t.mu.Unlock()
	t.p.see(r, blind)
	r.Row, r.value, r.changed = to, value, true
	r.known, r.unsealed = to.There, to.There
	if t.Config.Calls && to.Until > 0 {
		t.ends.add(store.End{At: to.Until, Key: key})
	}
}

// forget makes a row one that is not held.
func (t *Table) forget(r *Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(r)
	t.complete = false
	t.forgot++
}

// forgetNone forgets a row that is none, and was none.
func (t *Table) forgetNone(r *Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.complete && t.committed(r) && t.rows[r.key] == r {
		t.remove(r)
	}
}

// remove is called under the mutex.
func (t *Table) remove(r *Row) {
	delete(t.rows, r.key)
	t.bytes -= r.size
	t.Config.Budget.used.Add(-r.size)
}

// taken notes that a row goes with changes.
func (t *Table) taken(r *Row, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count(r)
	if !r.There {
		t.leaves(r, now)
	} else if r.Until > 0 {
		t.leaves(r, r.Until)
	}
}

// leaves notes when a row will have left, once; under the mutex. One that a function is called for stays until it is deleted. Beyond
// the budget rows leave with all others.
func (t *Table) leaves(r *Row, at int64) {
	if !t.over && !r.leaves && !(r.There && t.Config.Calls) {
		r.leaves = true
		heap.Push(&t.leaving, left{r, at})
	}
}

// committed reports whether Redis has the row as it is.
func (t *Table) committed(r *Row) bool { return !r.changed && r.taken <= t.confirmed.Load() }

// tidy forgets rows that have left the table and, beyond the budget, all that Redis has.
func (t *Table) tidy(now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.leaving) > 0 && t.leaving[0].at <= now {
		r := t.leaving[0].row
		gone := !r.There || r.Until > 0 && r.Until <= now && !t.Config.Calls
		if gone && !t.committed(r) {
			break
		}
		heap.Pop(&t.leaving)
		r.leaves = false
		switch {
		case t.rows[r.key] != r:
		case !gone && r.Until > 0: // it was set again since
			t.leaves(r, r.Until)
		case gone && t.complete: // else Redis would be asked for it again
			t.remove(r)
		}
	}
	if t.Config.Budget.used.Load() <= t.Config.Budget.Most || t.bytes <= 2*t.kept {
		return
	}
	for _, r := range t.rows {
		if t.committed(r) {
			t.remove(r)
		}
	}
	t.complete, t.over, t.kept, t.leaving = false, true, t.bytes, nil
}

// Close gives what the table takes back to the budget.
func (t *Table) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Config.Budget.used.Add(-t.bytes)
	t.rows, t.bytes, t.over, t.complete = map[string]*Row{}, 0, true, false
}

// All calls yield with the rows that are there at the partition's time, in no order, until it returns false. The
// function may change rows meanwhile. It panics with a Failure.
func (t *Table) All(yield func(key string, value any) bool) {
	t.mu.Lock()
	held := make(map[string]*Row, len(t.rows))
	for key, r := range t.rows {
		held[key] = r
	}
	complete := t.complete
	t.mu.Unlock()
	show := func(r *Row) bool {
		t.p.see(r, false)
		return !t.there(r) || yield(r.key, t.decoded(r))
	}
	for _, r := range held {
		if !show(r) {
			return
		}
	}
	for cursor := (store.Cursor{}); !complete; complete = cursor == (store.Cursor{}) {
		page, next, err := t.Config.Source.Page(t.Config.Place, cursor)
		if err != nil {
			panic(Failure{err})
		}
		for _, stored := range page {
			if held[stored.Key] == nil {
				r := t.find(stored.Key) // as it is here, and once
				held[stored.Key] = r
				if !show(r) {
					return
				}
			}
		}
		cursor = next
	}
}

// A DecodeError is the error of a row that cannot be decoded.
type DecodeError struct {
	Table, Key string
	Err        error
}

// Error names table and key.
func (e *DecodeError) Error() string {
	return fmt.Sprintf("table %s: decode the row of key %q: %v", e.Table, e.Key, e.Err)
}

// Unwrap returns Err.
func (e *DecodeError) Unwrap() error { return e.Err }
