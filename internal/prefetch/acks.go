package prefetch

import (
	"cmp"
	"slices"

	"github.com/runnel-go/runnel/internal/entryid"
)

// acks are the entries that were taken, until their acks are confirmed.
type acks struct {
	most     int      // entries that may be done and not acked
	taken    []string // IDs, ascending, with the consumer
	acking   []string // IDs, ascending, done and not yet with the acker
	flight   []string // IDs with the acker
	removed  []string // those of acking and flight whose data is gone; by position, that a script has moved out
	progress progress

	byPosition bool   // one position acks all up to it; else each entry is acked by itself
	again      bool   // the entries with the acker are acked again, as they are
	queue      *queue // what waits for the consumer, of which it may have given some back
	dropped    string // the first entry that waited when the buffer was closed
}

// outstanding returns how many entries are done and not acked.
func (a *acks) outstanding() int { return len(a.acking) + len(a.flight) }

// done moves entries from the consumer to the acker; see Buffer.Done.
func (a *acks) done(ids []string) (tell, hurry bool) {
	tell = a.due() == 0
	hurry = 2*(len(a.acking)+len(ids)) >= a.most && 2*len(a.acking) < a.most
	mixed := len(a.acking) > 0 && entryid.Compare(a.acking[len(a.acking)-1], ids[0]) > 0
	if len(ids) == 1 { // as most often: it costs less
		a.acking = append(a.acking, ids[0])
	} else {
		a.acking = append(a.acking, ids...)
	}
	if mixed {
		slices.SortFunc(a.acking, entryid.Compare)
	}
	a.strike(ids)
	return tell && a.due() > 0, hurry
}

// due returns how many entries may go to the acker. By position those wait that are behind one that is not done.
func (a *acks) due() int {
	all := len(a.acking)
	if !a.byPosition || all == 0 {
		return all
	}
	first := a.undone()
	if first == "" || entryid.Compare(a.acking[all-1], first) < 0 {
		return all
	}
	n, _ := slices.BinarySearchFunc(a.acking, first, entryid.Compare)
	return n
}

// undone returns the first entry that is known and not done, "" for none. One that the consumer has given back may
// lie before others that are done: those that were moved out of the partition meanwhile.
func (a *acks) undone() string {
	return cmp.Or(firstOf(a.taken), a.queue.firstID(), a.dropped)
}

// lost hands an entry without data to the acker.
func (a *acks) lost(id string) {
	a.acking = append(a.acking, id)
	a.removed = append(a.removed, id)
}

// strike removes entries from those with the consumer.
func (a *acks) strike(ids []string) {
	if len(ids) == len(a.taken) && ids[0] == a.taken[0] {
		a.taken = a.taken[:0]
		return
	}
	is := make(map[string]bool, len(ids))
	for _, id := range ids {
		is[id] = true
	}
	a.taken = slices.DeleteFunc(a.taken, func(id string) bool { return is[id] })
}

// take moves at most n IDs to the acker, none behind upTo unless that is "", unless it has some.
func (a *acks) take(n int, upTo string) []string {
	n = min(n, a.due())
	for upTo != "" && n > 0 && entryid.Compare(a.acking[n-1], upTo) > 0 {
		n--
	}
	switch {
	case a.again:
		a.again = false
	case len(a.flight) > 0 || n == 0:
		return nil
	case n >= len(a.acking):
		a.flight, a.acking = a.acking, a.flight[:0]
	default:
		a.flight = append(a.flight[:0], a.acking[:n]...)
		a.acking = a.acking[:copy(a.acking, a.acking[n:])]
	}
	return a.flight
}

// confirmed ends the acks of the last take, and returns their number.
func (a *acks) confirmed() (n int) {
	n = len(a.flight)
	if n > 0 {
		last := a.flight[n-1]
		a.removed = slices.DeleteFunc(a.removed, func(id string) bool { return isIn(a.flight, id) })
		if !a.byPosition {
			a.progress.remember(a.flight)
		}
		a.flight = a.flight[:0]
		a.confirm(last, n)
	}
	return n
}

// failed puts the IDs of the last take back. A position may be stored already, so the next take has the same.
func (a *acks) failed() {
	if a.byPosition {
		a.again = len(a.flight) > 0
		return
	}
	a.acking = append(append(make([]string, 0, a.outstanding()), a.flight...), a.acking...)
	a.flight = a.flight[:0]
	if !slices.IsSortedFunc(a.acking, entryid.Compare) {
		slices.SortFunc(a.acking, entryid.Compare)
	}
}

// moved counts entries with the consumer as acked, and returns their number. By position they are done: the
// position has yet to pass them.
func (a *acks) moved(ids []string) (n int) {
	if a.byPosition {
		ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !isIn(a.taken, id) })
		if len(ids) > 0 {
			slices.SortFunc(ids, entryid.Compare)
			a.removed = append(a.removed, ids...)
			a.done(ids)
		}
		return 0
	}
	before := len(a.taken)
	a.strike(ids)
	n = before - len(a.taken)
	if n > 0 {
		a.confirm(slices.MaxFunc(ids, entryid.Compare), n)
	}
	return n
}

// confirm counts n acked entries, the last of them being last.
func (a *acks) confirm(last string, n int) {
	a.progress.confirm(last, n, a.undone(), firstOf(a.acking), firstOf(a.flight))
}

// removedOf returns those of the IDs whose data is gone, or that were moved out.
func (a *acks) removedOf(ids []string) (out []string) {
	for _, id := range a.removed {
		if isIn(ids, id) {
			out = append(out, id)
		}
	}
	return out
}

// lowest returns the lowest entry that is not acked, "" without any. waiting is the next entry in
// the queue.
func (a *acks) lowest(waiting string) (lowest string) {
	for _, id := range []string{firstOf(a.flight), firstOf(a.acking), firstOf(a.taken), waiting} {
		if id != "" && (lowest == "" || entryid.Compare(id, lowest) < 0) {
			lowest = id
		}
	}
	return lowest
}

// begun returns the last entry that the consumer was given, at least the committed one.
func (a *acks) begun() (last string) {
	last = a.progress.committed
	for _, ids := range [][]string{a.flight, a.acking, a.taken} {
		if n := len(ids); n > 0 && entryid.Compare(ids[n-1], last) > 0 {
			last = ids[n-1]
		}
	}
	return last
}

// isIn reports whether an ID is among some that ascend.
func isIn(ids []string, id string) bool {
	_, found := slices.BinarySearchFunc(ids, id, entryid.Compare)
	return found
}

func firstOf(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return ids[0]
}
