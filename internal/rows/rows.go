// Package rows holds rows of tables in the memory of the owner of their partition, which alone changes them: those that
// were read or changed during the ownership, and what a loader has brought. Changes are gathered by iteration and undone
// where that fails; package worker commits them with the acks.
package rows

import (
	"errors"
	"fmt"
	"math"
	"reflect"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/store"
)

// Bounds of an iteration, which one script commits as a whole.
const (
	MostBytes = 16 << 20
	MostItems = 8192 // rows and outputs
)

// textOverhead is what a text of an output counts for beside its bytes: Redis takes only so many arguments at once.
const textOverhead = 32

// ErrTooLarge is the error of an iteration beyond the bounds.
var ErrTooLarge = errors.New("the iteration changes or emits too much for one commit")

// A Failure is what a method panics with where it has no result: the row cannot be read, or the ownership ended while
// the method waited for Redis.
type Failure struct{ Err error }

// A Partition is the rows of a processor's tables in one partition, and what the current iteration changes and emits.
// Its methods are for the function's goroutine, except Confirmed.
type Partition struct {
	Tables []*Table // in the order of the processor's options

	// OfEvents lets rows be set whose keys belong to the partition that the events would be in: where all are in one, in
	// tests.
	OfEvents bool

	// Skip is the end of a row that an operator wants skipped, by its EndError.Name; "" for none.
	Skip string

	// Suspect says that the next end of a row may be what ended the owner before.
	Suspect bool

	inside  bool  // an iteration is under way
	now     int64 // the partition's time, in ms
	latest  int64 // that was reached: now is earlier only while a row ends
	quiet   int64 // see Quiet
	mark    int64 // number of the last mark
	seen    []seen
	outputs []store.Output
	bytes   int64
	taken   int64 // number of the last changes that were taken
}

// A seen row has been read or changed since a mark.
type seen struct {
	row     *Row
	before  store.Row
	changed bool // before that
	blind   bool // what Redis has is not known
}

// A Mark is a state that can be returned to until changes are taken.
type Mark struct {
	seen, outputs int
	bytes         int64
}

// Begin begins an iteration whose last event has an ID. The partition's time never goes back.
func (p *Partition) Begin(id string) {
	p.From(id)
	p.inside = true
}

// From says that all up to an entry is done: the partition's time is not before it, though a parked event may be.
func (p *Partition) From(id string) {
	p.latest = max(p.latest, entryid.Millis(id))
	p.now = p.latest
}

// At says that the partition has come to a time, in ms.
func (p *Partition) At(ms int64) {
	p.latest = max(p.latest, ms)
	p.now = p.latest
}

// End ends it: until the next one begins nothing may be changed.
func (p *Partition) End() { p.now, p.inside = p.latest, false }

// Inside reports whether an iteration is under way.
func (p *Partition) Inside() bool { return p.inside }

// Now returns the partition's time, in ms since 1970.
func (p *Partition) Now() int64 { return p.now }

// Mark returns the present state. All that was set before must be sealed.
func (p *Partition) Mark() Mark {
	p.mark++
	return Mark{len(p.seen), len(p.outputs), p.bytes}
}

// see notes that the function sees a row, before that.
func (p *Partition) see(r *Row, blind bool) {
	if r.mark != p.mark {
		r.mark = p.mark
		p.seen = append(p.seen, seen{r, r.Row, r.changed, blind})
	}
}

// Undo returns to a state. It forgets the values that the function has seen since, which it may have changed in place.
func (p *Partition) Undo(to Mark) {
	for i := len(p.seen) - 1; i >= to.seen; i-- {
		s := p.seen[i]
		s.row.Row, s.row.changed = s.before, s.changed
		s.row.value, s.row.known, s.row.unsealed = nil, false, false
		if s.blind {
			s.row.table.forget(s.row)
		}
	}
	clear(p.seen[to.seen:])
	p.seen, p.outputs, p.bytes = p.seen[:to.seen], p.outputs[:to.outputs], to.bytes
	p.mark++
}

// Emit adds an output.
func (p *Partition) Emit(o store.Output) {
	for _, text := range o.Fields {
		p.bytes += int64(len(text)) + textOverhead
	}
	p.outputs = append(p.outputs, o)
}

// Seal encodes what was set since the last one, and fails if that cannot be done, or if it is too much.
func (p *Partition) Seal() error {
	n := len(p.outputs)
	for _, s := range p.seen {
		r := s.row
		if r.unsealed {
			value, err := r.table.Config.Encode(r.value)
			if err != nil {
				return fmt.Errorf("table %s: encode the row of key %q: %w", r.table.Config.Name, r.key, err)
			}
			r.Value, r.unsealed = value, false
			p.bytes += int64(len(r.key) + len(value))
		}
		if r.changed {
			n++
		}
	}
	if n > MostItems || p.bytes > MostBytes {
		return fmt.Errorf("%w: %d rows and outputs, %d bytes; it may have %d, and %d bytes: take fewer events at a time, or make rows smaller", ErrTooLarge, n, p.bytes, MostItems, int64(MostBytes))
	}
	return nil
}

// Pending returns how many rows and outputs have changed since the last Take, their bytes, and how many at most may be in a
// commit of several iterations. All of it is sealed.
func (p *Partition) Pending() (items int, bytes int64, together int) {
	items, together = len(p.outputs), math.MaxInt
	for _, o := range p.outputs {
		if o.Together > 0 {
			together = min(together, o.Together)
		}
	}
	for _, s := range p.seen {
		if s.row.changed {
			items++
		}
	}
	return items, p.bytes, together
}

// Take adds what has changed since the last Take to earlier changes. It cannot be undone any more.
func (p *Partition) Take(into *store.Changes) {
	p.addTo(into)
	p.forgetNone()
	clear(p.seen)
	clear(p.outputs)
	p.seen, p.outputs, p.bytes = p.seen[:0], p.outputs[:0], 0
	p.mark++
	for _, t := range p.Tables {
		t.tidy(p.now)
	}
}

// Drop forgets what the function has seen, where nothing of it was changed: it need not be undone any more.
func (p *Partition) Drop() {
	p.forgetNone()
	clear(p.seen)
	p.seen = p.seen[:0]
	p.mark++
	for _, t := range p.Tables {
		t.tidy(p.now)
	}
}

// forgetNone forgets keys without a row that were only looked up, where Redis need not be asked for them again.
func (p *Partition) forgetNone() {
	for _, s := range p.seen {
		if r := s.row; !r.There && !r.leaves {
			r.table.forgetNone(r)
		}
	}
}

// Altered calls found with each row that the function has seen since the last Take and changed in place, without Set: such
// changes are in memory alone. It is for tests, since it encodes all that was seen.
func (p *Partition) Altered(found func(table, key string)) {
	for _, s := range p.seen {
		if r := s.row; r.known && !r.changed && r.altered() {
			found(r.table.Config.Name, r.key)
		}
	}
}

// altered reports whether the value is another one than was encoded. A codec need not make the same bytes each time.
func (r *Row) altered() bool {
	data, err := r.table.Config.Encode(r.value)
	if err != nil || data == r.Value {
		return err != nil
	}
	value, err := r.table.Config.Decode(data)
	before, failed := r.table.Config.Decode(r.Value)
	return err != nil || failed != nil || !reflect.DeepEqual(value, before)
}

func (p *Partition) addTo(c *store.Changes) {
	if c.Tables == nil {
		c.Tables = make([]store.TableChanges, len(p.Tables))
	}
	for i, t := range p.Tables {
		c.Tables[i].Table = t.Config.Place
		if t.Config.Ends && !t.Config.Calls {
			c.Tables[i].Ended = p.now
		}
	}
	c.Outputs, c.Now = append(c.Outputs, p.outputs...), p.latest
	p.taken++
	for _, s := range p.seen {
		r := s.row
		if !r.changed {
			continue
		}
		rows := &c.Tables[r.table.Config.Index].Rows
		if *rows == nil {
			*rows = map[string]store.Row{}
		}
		(*rows)[r.key] = r.Row
		r.changed, r.taken = false, p.taken
		r.table.taken(r, p.now)
	}
}

// Taken returns the number of the last changes that were taken, from 1.
func (p *Partition) Taken() int64 { return p.taken }

// Confirmed says that all changes up to a number are committed: Redis has these rows. It may be called concurrently.
func (p *Partition) Confirmed(taken int64) {
	for _, t := range p.Tables {
		t.confirmed.Store(taken)
	}
}
