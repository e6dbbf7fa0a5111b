package history

import "fmt"

// late is an event that was sent for later.
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

// delays looks at what became of the events that were sent for later. Those that are there twice are found by resends.
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
		switch gone := l.cancelled; {
		case gone != nil && gone.Failed: // either is right
		case gone != nil && c.failedOver(gone.At, gone.At+int64(c.opts.Aftermath)): // and here
		case gone != nil && len(entries) > 0:
			c.violate(ClassEarly, where, fmt.Sprintf("key %q seq %d was cancelled, and is entry %s", m.key, m.seq, entries[0].id), *l.accepted, *gone)
		case gone == nil && len(entries) == 0 && c.wipedAfter(l.accepted.At):
			c.report.Excused++
		case gone == nil && len(entries) == 0 && c.opts.Some && c.split(l.accepted.At):
			c.report.Vanished++
			c.report.Lost++
		case gone == nil && len(entries) == 0:
			c.violate(ClassLoss, where, fmt.Sprintf("key %q seq %d was delayed and never came", m.key, m.seq), *l.accepted)
		}
	}
}

// wipedAfter says whether anything was wiped after a moment.
func (c *checker) wipedAfter(at int64) bool {
	for _, f := range c.faults {
		if f.Fault == Wipe && f.At > at {
			return true
		}
	}
	return false
}
