package rows

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"slices"

	"github.com/runnel-go/runnel/internal/store"
)

// mostEnds bounds how many ends of rows a table holds at once.
const mostEnds = 4096

// ends are when rows end that a function is called for: the first ones of a table, by time and key. They follow what
// is set, and not what is undone or deleted: an end is checked against its row when its time has come. Only the
// function's goroutine uses them.
type ends struct {
	t     *Table
	heap  endHeap
	least map[string]int64 // of each key in the heap: the first of its ends there
	known store.End        // all up to this one are in the heap
}

// Neither has a row: none is known, and all are.
var (
	noEnds  = store.End{At: math.MinInt64}
	allEnds = store.End{At: math.MaxInt64}
)

func compareEnds(a, b store.End) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Key, b.Key))
}

type endHeap []store.End

func (h endHeap) Len() int           { return len(h) }
func (h endHeap) Less(i, j int) bool { return compareEnds(h[i], h[j]) < 0 }
func (h endHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *endHeap) Push(e any)        { *h = append(*h, e.(store.End)) }
func (h *endHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h = (*h)[:last]
	return e
}

// add notes that a row ends then, if that is among the first.
func (e *ends) add(one store.End) {
	if compareEnds(one, e.known) > 0 {
		return
	}
	if at, held := e.least[one.Key]; held && at <= one.At {
		return // its end is checked then
	}
	if len(e.heap) == mostEnds {
		e.shed()
		e.add(one)
		return
	}
	heap.Push(&e.heap, one)
	e.least[one.Key] = one.At
}

// shed forgets the later half.
func (e *ends) shed() {
	slices.SortFunc(e.heap, compareEnds)
	e.heap = e.heap[: mostEnds/2 : mostEnds]
	e.known = e.heap[len(e.heap)-1]
	clear(e.least)
	for _, one := range slices.Backward(e.heap) {
		e.least[one.Key] = one.At
	}
}

func (e *ends) pop() {
	one := heap.Pop(&e.heap).(store.End)
	if e.least[one.Key] == one.At {
		delete(e.least, one.Key)
	}
}

// next returns a time before which no row ends.
func (e *ends) next() int64 {
	if len(e.heap) > 0 {
		return e.heap[0].At
	}
	return e.known.At
}

// first returns the first row that ends by a time, nil for none. It blocks while Redis is asked, with an error
// if the ownership has ended.
func (e *ends) first(by int64) (*Row, error) {
	for e.next() <= by {
		if len(e.heap) == 0 {
			if err := e.ask(); err != nil {
				return nil, err
			}
			continue
		}
		one := e.heap[0]
		if err := e.t.Ask([]string{one.Key}); err != nil {
			return nil, err
		}
		switch r := e.t.find(one.Key); {
		case r.There && (r.Until == 0 || r.Until > one.At): // set again since
			e.pop()
			if r.Until > 0 {
				e.add(store.End{At: r.Until, Key: r.key})
			}
		case !r.There && r.taken > 0: // deleted since
			e.pop()
		default:
			return r, nil
		}
	}
	return nil, nil
}

// ask has Redis tell the first ends, once none is held.
func (e *ends) ask() error {
	some := e.t.atOnce()
	found, err := e.t.Config.Source.Ends(e.t.Config.Place, int64(some))
	if err != nil {
		return err
	}
	e.known = allEnds
	if len(found) == some {
		e.known = found[some-1]
	}
	keys := make([]string, len(found))
	for i, one := range found {
		e.add(one)
		keys[i] = one.Key
	}
	if err := e.t.Ask(keys); err != nil {
		return err
	}
	// All is committed: a row that is another one was changed in Redis by other hands, and would come up for ever.
	for _, one := range found {
		switch r := e.t.find(one.Key); {
		case !r.There:
			r.taken = 0
		case r.Until != one.At:
			r.Until = one.At
		}
	}
	return nil
}

// An Ending is a row whose time has come.
type Ending struct {
	Table int // index among the processor's
	Key   string
	At    int64
	Value any  // nil where there is no row
	There bool // false for a time that is left of a row that is gone: it is to be deleted, and nothing more
}

// An EndError is the error of a row's end.
type EndError struct {
	Table, Key string
	At         int64
	Err        error
}

// Error names table and key.
func (e *EndError) Error() string {
	return fmt.Sprintf("table %s: end of the row of key %q: %v", e.Table, e.Key, e.Err)
}

// Unwrap returns Err.
func (e *EndError) Unwrap() error { return e.Err }

// Name names the end among all of the processor in its partition.
func (e *EndError) Name() string { return store.EndName(e.Table, e.Key, e.At) }

// Ending returns the row that ends first by a time, of the tables that call a function; ok is false if there is none. It
// blocks while Redis is asked, behind all that was done before. An error is that of a row that cannot be decoded, with
// the ending; or else the ownership has ended.
func (p *Partition) Ending(by int64) (e Ending, ok bool, err error) {
	var first *Row
	for _, t := range p.Tables {
		if !t.Config.Calls {
			continue
		}
		r, err := t.ends.first(by)
		if err != nil {
			return e, false, err
		}
		if r != nil && (first == nil || t.ends.next() < first.table.ends.next()) {
			first = r
		}
	}
	if first == nil {
		return e, false, nil
	}
	t := first.table
	e = Ending{Table: t.Config.Index, Key: first.key, At: t.ends.next(), There: first.There}
	if first.There {
		e.Value, err = first.decode()
	}
	return e, true, err
}

// NextEnd returns a time in ms before which no row ends that a function is called for: math.MaxInt64 if none ever
// does, math.MinInt64 if that is not known yet.
func (p *Partition) NextEnd() int64 {
	next := int64(math.MaxInt64)
	for _, t := range p.Tables {
		if t.Config.Calls {
			next = min(next, t.ends.next())
		}
	}
	return next
}

// BeginEnd begins the iteration of a row that ends then, which is the partition's time while it lasts, also where a parked event has
// been passed that came later.
func (p *Partition) BeginEnd(at int64) {
	p.latest = max(p.latest, at)
	p.now, p.inside = at, true
}

// Quiet says that no event comes before a time in ms: rows that end by then have ended.
func (p *Partition) Quiet(now int64) { p.quiet = max(p.quiet, now) }

// QuietTo returns the time of the last Quiet.
func (p *Partition) QuietTo() int64 { return p.quiet }
