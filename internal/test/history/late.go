package history

import (
	"fmt"
	"math"
	"slices"
)

// late is a delayed event.
type late struct {
	accepted  *Record
	cancelled *Record // it was taken back, or, if this failed, perhaps
}

func (c *checker) learnLate(r *Record) {
	for i, key := range r.Keys {
		m := message{r.Stream, key, r.Seqs[i]}
		l := c.late[m]
		if l == nil {
			l = &late{}
			c.late[m] = l
		}
		if r.Kind == Delayed {
			l.accepted = r
			c.report.Delayed++
		} else {
			l.cancelled = r
		}
	}
}

// delays checks the outcomes of delayed events. resends finds duplicates.
func (c *checker) delays() {
	for m, l := range c.late {
		where := fmt.Sprintf("stream %q", m.stream)
		entries := c.entries[m]
		if l.accepted == nil {
			c.violate(ClassRecord, where, fmt.Sprintf("key %q seq %d was cancelled, and not delayed", m.key, m.seq), *l.cancelled)
			continue
		}
		for _, e := range entries {
			if due := l.accepted.Due; e.id.ms < uint64(due) {
				c.violate(ClassEarly, where, fmt.Sprintf("key %q seq %d was due at %d, and is entry %s", m.key, m.seq, due, e.id), *l.accepted)
			}
		}
		came := slices.ContainsFunc(entries, func(e entry) bool { return !c.vanished(e) || c.handled(e) })
		switch gone := l.cancelled; {
		case gone != nil && gone.Failed: // either is right
		case gone != nil && c.faults.failedOver(gone.At, math.MaxInt64): // and here
		case gone != nil && len(entries) > 0:
			c.violate(ClassEarly, where, fmt.Sprintf("key %q seq %d was cancelled, and is entry %s", m.key, m.seq, entries[0].id), *l.accepted, *gone)
		case gone != nil || came:
		case c.wipedBefore(l.accepted), slices.ContainsFunc(entries, c.taken):
			c.report.Excused++
		case c.opts.Some && c.faults.split(l.accepted.At):
			c.report.Vanished++
			c.report.Lost++
		default:
			c.violate(ClassLoss, where, fmt.Sprintf("key %q seq %d was delayed and never came", m.key, m.seq), *l.accepted)
		}
	}
}

// wipedBefore reports whether the partition of a delayed event was wiped after it was
// accepted and before it was due, or soon after that or after what servers suffered.
func (c *checker) wipedBefore(r *Record) bool {
	return slices.ContainsFunc(c.wipes[r.log()], func(w *wipe) bool {
		soon := int64(w.last.ms) <= r.Due+aftermath/1e6
		return w.to > r.At && (soon || c.faults.suffered("", w.from-aftermath, w.from-1))
	})
}

// handled reports whether a processor is done with an entry.
func (c *checker) handled(e entry) bool {
	for p, o := range c.places {
		if p.stream == e.stream && p.partition == e.partition && (o.completed[e.id] != nil || c.dead[p][e.id] != nil) {
			return true
		}
	}
	return false
}
