package history

import "fmt"

// accepted is the latest answer of the server about the owner of a place.
type accepted struct{ owned, rest *Record }

// own checks an answer of the server about an owner.
func (c *checker) own(r *Record) {
	p := r.scope()
	a := c.accepted[p]
	if a == nil {
		a = &accepted{}
		c.accepted[p] = a
	}
	c.report.Looks++
	if r.Count > 1 {
		c.violate(ClassOwner, p.String(), fmt.Sprintf("%d owners are accepted at once", r.Count), *r)
	}
	if a.owned != nil && c.faults.failedOver(a.owned.At, r.At) {
		a.owned = nil // it need not have been replicated; nothing began under it, then
	}
	switch last := a.owned; {
	case r.Epoch == 0: // it had no owner yet, or a wipe took that away
		return
	case last == nil:
	case r.Epoch < last.Epoch:
		c.violate(ClassOwner, p.String(), fmt.Sprintf("the epoch went back from %d to %d", last.Epoch, r.Epoch), *last, *r)
	case r.Epoch == last.Epoch && r.Executor != last.Executor:
		c.violate(ClassOwner, p.String(), fmt.Sprintf("epoch %d was given to two executors", r.Epoch), *last, *r)
	}
	a.owned = r
}

// learnRest records that everything at a place was done.
func (c *checker) learnRest(r *Record) {
	p := r.scope()
	if c.accepted[p] == nil {
		c.accepted[p] = &accepted{}
	}
	c.accepted[p].rest = r
}

// disturb checks an iteration at a place that was at rest before.
func (o *ownership) disturb(r *Record, ids []entryID) {
	a := o.c.accepted[o.place]
	if a == nil || a.rest == nil || r.At < a.rest.At {
		return
	}
	if r.Epoch < a.rest.Epoch {
		o.violate(ClassOwner, fmt.Sprintf("an iteration began under epoch %d after a rest under epoch %d", r.Epoch, a.rest.Epoch), a.rest, r)
	}
	last, _ := parseID(a.rest.IDs[0])
	for _, id := range ids {
		if id.compare(last) <= 0 {
			o.violate(ClassRepeat, fmt.Sprintf("%s began again: everything up to %s was done", id, last), a.rest, r)
		}
	}
}
