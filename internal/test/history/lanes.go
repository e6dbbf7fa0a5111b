package history

import "fmt"

func (c *checker) learnDead(r *Record) {
	p := place{r.Stream, r.Processor, r.Partition}
	if c.dead[p] == nil {
		c.dead[p] = map[entryID]*Record{}
	}
	for _, s := range r.IDs {
		id, _ := parseID(s)
		c.report.Dead++
		if before := c.dead[p][id]; before != nil && !c.faults.failedOver(before.At, r.At) {
			c.violate(ClassRepeat, p.String(), fmt.Sprintf("%s became a dead letter twice", id), *before, *r)
		}
		c.dead[p][id] = r
	}
}

// burials looks for dead letters that were completed too, though nothing happened to the worker that completed them.
func (c *checker) burials() {
	for p, dead := range c.dead {
		for id, r := range dead {
			o := c.places[p]
			if o == nil || o.completed[id] == nil {
				continue
			}
			end := o.completed[id]
			if !c.faults.suffered(end.Worker, end.At-aftermath, end.At+aftermath) {
				c.violate(ClassRepeat, p.String(), fmt.Sprintf("%s was completed and is a dead letter", id), *end, *r)
			}
		}
	}
}

// lane is what an event has to wait in, by its key.
func (o *ownership) lane(key string) string {
	if o.c.opts.Lanes == LaneKey {
		return key
	}
	return ""
}

// wait judges whether an event begins before an earlier one of its lane is done.
func (o *ownership) wait(r *Record, ids []entryID) {
	if o.c.opts.Lanes != LanePartition && o.c.opts.Lanes != LaneKey {
		return
	}
	in := map[entryID]bool{}
	for i, id := range ids {
		lane := o.lane(r.Keys[i])
		for before, begin := range o.undone[lane] {
			e := entry{r.Stream, r.Partition, before}
			if before.compare(id) < 0 && !in[before] && o.c.dead[o.place][before] == nil && o.c.wiped(r.log(), before, r.At) == nil && !o.c.vanished(e) && !o.unburied(e, begin.At, r.At) {
				o.violate(ClassOrder, fmt.Sprintf("%s began while %s, which is before it in its lane, was not done", id, before), begin, r)
			}
		}
		in[id] = true
	}
	for i, id := range ids {
		if o.completed[id] != nil {
			continue
		}
		lane := o.lane(r.Keys[i])
		if o.undone[lane] == nil {
			o.undone[lane] = map[entryID]*Record{}
		}
		o.undone[lane][id] = r
	}
}

// unburied reports whether an event may have become a dead letter between two moments that is not found: a failover lost it, and a wipe
// the event, before it was one again.
func (o *ownership) unburied(e entry, from, to int64) bool {
	return o.c.faults.failedOver(from, to) && o.c.taken(e)
}

// finish takes a completed event out of its lane.
func (o *ownership) finish(id entryID) {
	lane := o.lane(o.c.messages[entry{o.place.stream, o.place.partition, id}].key)
	delete(o.undone[lane], id)
}
