package runnel

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/runnel-go/runnel/internal/rows"
)

// Rows are the rows of a table in one partition, for a call of the function of the
// processor that has the table. What an iteration changes is committed in one step with
// its ack and with what it emits, and undone if it fails: so each event counts once,
// whatever dies when.
//
// The methods are for the function's own goroutine. Those that change rows panic outside
// of an iteration. One that waits for Redis while the partition is lost does not return,
// nor does one that finds a row which cannot be decoded: the function ends there, its defers
// run, and in the second case the event has failed.
type Rows[V any] struct {
	t  *table
	in *rows.Table
	c  *atomicState
}

// Rows returns the rows of the partition that ctx is of: the context of a ProcessFunc, or
// of an iteration. They are for that call of the function, and may be asked for in each
// iteration, or once before the loop. It does no I/O. It panics if ctx is of no processor
// that has the table.
func (t *Table[V]) Rows(ctx context.Context) *Rows[V] {
	sc, _ := ctx.Value(scopeKey{}).(*scope)
	if sc == nil || sc.atomic == nil {
		panic("runnel: table " + t.name + ": Rows: the context is of no processor that has the table in its Tables")
	}
	return rowsOf[V](sc.atomic, t.table)
}

func rowsOf[V any](c *atomicState, t *table) *Rows[V] {
	for i, other := range c.tables {
		if other != t {
			continue
		}
		if r, ok := c.typed[i].(*Rows[V]); ok {
			return r
		}
		r := &Rows[V]{t, c.rows.Tables[i], c}
		c.typed[i] = r
		return r
	}
	panic("runnel: table " + t.name + ": Rows: the processor does not have the table in its Tables")
}

// Get returns the row of a key, and whether there is one: as it was set last, also in this
// iteration. What the row refers to must not be changed but by Set: a change in place is
// not stored. It reads from memory, once the partition's rows are there; before
// that, and beyond TableOptions.Memory, it may block for a round trip. It panics if the
// key belongs to another partition, unless the table is Local; Table.Get reads that.
func (r *Rows[V]) Get(key string) (row V, ok bool) {
	value, ok := r.in.Get(key)
	if !ok {
		r.mustBelong("Get", key)
		return row, false
	}
	return value.(V), true
}

// Set sets the row of a key, until TTL after Now if the table has one. It encodes row when
// the iteration ends, and keeps it. It panics if the key belongs to another partition,
// unless the table is Local.
func (r *Rows[V]) Set(key string, row V) {
	r.mustChange("Set", key)
	until := int64(0)
	if ttl := r.t.opts.TTL; ttl > 0 {
		until = r.c.rows.Now() + ttl.Milliseconds()
	}
	r.in.Set(key, row, until)
}

// Delete deletes the row of a key, if there is one.
func (r *Rows[V]) Delete(key string) {
	r.mustChange("Delete", key)
	r.in.Delete(key)
}

// Update sets the row of a key to what change returns for it, or for the zero row if there
// is none, and returns that.
func (r *Rows[V]) Update(key string, change func(row V) V) V {
	row, _ := r.Get(key)
	row = change(row)
	r.Set(key, row)
	return row
}

// All yields the partition's rows in no order. The loop may change rows. It blocks while
// rows are read that are not in memory, and holds all of them there meanwhile.
func (r *Rows[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		r.in.All(func(key string, value any) bool { return yield(key, value.(V)) })
	}
}

// Now returns the partition's time: when the last event of the iteration was appended, by
// Redis' clock. It never goes back.
func (r *Rows[V]) Now() time.Time { return time.UnixMilli(r.c.rows.Now()) }

func (r *Rows[V]) mustChange(method, key string) {
	if !r.c.rows.Inside() {
		panic("runnel: table " + r.t.name + ": " + method + ": rows can only be changed within an iteration over events")
	}
	r.mustBelong(method, key)
}

func (r *Rows[V]) mustBelong(method, key string) {
	if r.t.opts.Local {
		return
	}
	o := r.t.of.effective // read when the worker started
	n, here := o.Partitioner.Func(key, o.Partitions), r.c.partition
	if r.c.rows.OfEvents {
		here = r.c.partitionLike(n, o)
	}
	if n != here {
		panic(fmt.Sprintf("runnel: table %s: %s: key %q belongs to partition %d, not to %d; a table that is Local keeps keys where they are set, and Table.Get reads any", r.t.name, method, key, n, here))
	}
}
