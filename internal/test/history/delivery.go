package history

import (
	"fmt"
	"math"
)

// hold is a time in which nothing begins at some places.
type hold struct {
	*Record
	until int64
}

// learnHold records the begin or end of a hold.
func (c *checker) learnHold(r *Record) {
	if r.Kind == Held {
		c.report.Holds++
		c.holds = append(c.holds, &hold{r, math.MaxInt64})
		return
	}
	for _, h := range c.holds {
		if h.until == math.MaxInt64 && h.scope() == r.scope() {
			h.until = r.At
			return
		}
	}
	c.violate(ClassRecord, r.scope().String(), "freed, and was not held", *r)
}

// scope is the place of a hold; a partition below 0 stands for all.
func (r *Record) scope() place { return place{r.Stream, r.Processor, r.Partition} }

// obey checks that no iteration begins during a hold.
func (c *checker) obey(r *Record) {
	for _, h := range c.holds {
		s := h.scope()
		covers := s.stream == r.Stream && s.processor == r.Processor && (s.partition < 0 || s.partition == r.Partition)
		if covers && h.At < r.At && r.At < h.until && !c.faults.resumed(r.Worker, h.At, r.At) && !c.faults.failedOver(h.At, r.At) {
			c.violate(ClassHold, r.scope().String(), "an iteration began while the place was held back", *h.Record, *r)
		}
	}
}

// early checks that no entry was appended before it was due.
func (c *checker) early(r *Record, id entryID) {
	if r.Due > 0 && id.ms < uint64(r.Due) {
		c.violate(ClassEarly, r.scope().String(), fmt.Sprintf("entry %s was due at %d", id, r.Due), *r)
	}
}

// attempt checks how often an event is attempted.
func (o *ownership) attempt(r *Record, ids []entryID) {
	for i, n := range r.Attempts {
		id := ids[i]
		if most := o.c.opts.Attempts; most > 0 && n > most {
			o.violate(ClassAttempts, fmt.Sprintf("%s is attempted for the %dth time, of %d", id, n, most), r)
		}
		last := o.attempts[id]
		if last != nil && n < last.n && !o.c.faults.failedOver(last.begin.At, r.At) {
			o.violate(ClassAttempts, fmt.Sprintf("%s is attempted for the %dth time after the %dth", id, n, last.n), last.begin, r)
		}
		// A disconnected owner need not have counted what it began.
		if last != nil && n == last.n && last.begin.Epoch == r.Epoch && !o.c.faults.suffered(r.Worker, last.begin.At-aftermath, r.At) {
			o.violate(ClassAttempts, fmt.Sprintf("%s is attempted for the %dth time twice", id, n), last.begin, r)
		}
		o.attempts[id] = &attempt{n, r}
	}
}

// attempt is the latest one of an event.
type attempt struct {
	n     int
	begin *Record
}
