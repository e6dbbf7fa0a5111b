package history

import (
	"fmt"
	"slices"
)

// ownership is what happened at one place so far.
type ownership struct {
	c     *checker
	place place

	terms     map[int64]*term
	latest    *term                          // the largest epoch under which an iteration began
	completed map[entryID]*Record            // the last end that completed it
	seqs      map[string]int64               // of a key, the largest one completed
	done      map[message]bool               // completed, under whatever entry ID
	undone    map[string]map[entryID]*Record // begun and not completed, by lane
	lasts     map[string]*first              // of a key, the last of its first completions
	attempts  map[entryID]*attempt
}

// term is one epoch of a place.
type term struct {
	first      *Record // its first begin
	last       int64   // when it was last heard of
	open       *iteration
	begun      entryID // the largest one
	unfinished int
}

type iteration struct {
	begin *Record
	ids   []entryID
}

// first is the first completion of an event.
type first struct {
	id    entryID
	begin *Record
	end   *Record
}

// follow takes the next record in the order of time.
func (c *checker) follow(r *Record) {
	if r.Kind != Begin && r.Kind != End || r.check() != nil {
		return
	}
	p := place{r.Stream, r.Processor, r.Partition}
	o := c.places[p]
	if o == nil {
		o = &ownership{
			c: c, place: p, terms: map[int64]*term{}, completed: map[entryID]*Record{}, seqs: map[string]int64{},
			done: map[message]bool{}, undone: map[string]map[entryID]*Record{}, lasts: map[string]*first{},
			attempts: map[entryID]*attempt{},
		}
		c.places[p] = o
	}
	ids := make([]entryID, len(r.IDs))
	for i, s := range r.IDs {
		ids[i], _ = parseID(s)
	}
	if r.Kind == Begin {
		o.begin(r, ids)
	} else {
		o.end(r, ids)
	}
}

func (o *ownership) begin(r *Record, ids []entryID) {
	if !slices.IsSortedFunc(ids, entryID.compare) {
		o.violate(ClassOrder, "a batch is not in the order of its entry IDs", r)
	}
	t := o.terms[r.Epoch]
	if t == nil {
		t = &term{first: r}
		o.terms[r.Epoch] = t
	} else {
		o.again(t, r, ids)
	}
	switch {
	case o.latest == nil:
		o.latest = t
	case r.Epoch > o.latest.first.Epoch:
		o.handover(o.latest, r)
		o.latest = t
	case r.Epoch < o.latest.first.Epoch && (o.leftover(r, ids) || o.c.faults.split(r.At)):
		o.c.report.Leftovers++
	case r.Epoch < o.latest.first.Epoch && o.woken(t, r):
		o.c.report.Leftovers++
		t.open, t.last = &iteration{r, ids}, r.At
		return // it was begun before what came meanwhile
	case r.Epoch < o.latest.first.Epoch:
		o.violate(ClassOwner, fmt.Sprintf("an iteration began under epoch %d when epoch %d had already begun one",
			r.Epoch, o.latest.first.Epoch), o.latest.first, r)
	}
	o.disturb(r, ids)
	o.wait(r, ids)
	o.attempt(r, ids)
	o.c.obey(r)
	t.open, t.last = &iteration{r, ids}, r.At
	if highest := ids[len(ids)-1]; highest.compare(t.begun) > 0 {
		t.begun = highest
	}
}

// woken reports whether an iteration is the first record of a term right after its worker was
// continued: it had begun before the stop without being recorded.
func (o *ownership) woken(t *term, r *Record) bool {
	return slices.ContainsFunc(o.c.faults.list, func(f *trouble) bool {
		return f.Fault == Stop && f.Worker == r.Worker && t.last < f.until && f.At <= o.latest.first.At &&
			f.until <= r.At && r.At <= f.until+afterStop
	})
}

// again checks an iteration that is not the first of its epoch.
func (o *ownership) again(t *term, r *Record, ids []entryID) {
	if t.first.Worker != r.Worker || t.first.Executor != r.Executor {
		o.violate(ClassOwner, fmt.Sprintf("epoch %d has two owners", r.Epoch), t.first, r)
	}
	if t.open != nil {
		t.unfinished++
		if !o.c.opts.Retries || t.open.ids[0] != ids[0] {
			o.violate(ClassOwner, "an iteration began before the previous one had ended", t.open.begin, r)
		}
	}
	if ids[0].compare(t.begun) > 0 {
		return
	}
	if !o.c.opts.Retries {
		o.violate(ClassOwner, fmt.Sprintf("an iteration went back: %s was begun before, under the same epoch", t.begun), r)
		return
	}
	for _, id := range ids {
		if end := o.completed[id]; end != nil && end.Epoch == r.Epoch {
			o.violate(ClassOwner, fmt.Sprintf("an iteration went back to %s, which is completed", id), end, r)
		}
	}
}

func (o *ownership) handover(old *term, r *Record) {
	if o.excuse(old, r.At) {
		o.c.report.Unclean++
		return
	}
	o.c.report.Clean++
	if old.open != nil {
		o.violate(ClassOwner, fmt.Sprintf("epoch %d began while an iteration of epoch %d, which nothing had happened to, "+
			"had not ended", r.Epoch, old.first.Epoch), old.open.begin, r)
	}
}

// excuse reports whether the owner of a term suffered something, near its end, that excuses repeats until now.
func (o *ownership) excuse(t *term, now int64) bool {
	return o.c.faults.suffered(t.first.Worker, t.last-aftermath, now)
}

func (o *ownership) end(r *Record, ids []entryID) {
	t := o.terms[r.Epoch]
	if t == nil || t.open == nil || t.open.begin.Worker != r.Worker || t.open.begin.Executor != r.Executor ||
		slices.ContainsFunc(ids, func(id entryID) bool { return !slices.Contains(t.open.ids, id) }) {
		o.violate(ClassRecord, "an iteration ended that had not begun", r)
		return
	}
	begin := t.open.begin
	t.open, t.last = nil, r.At
	if r.Failed {
		return
	}
	for _, id := range ids {
		o.c.report.Completed++
		if before := o.completed[id]; before != nil {
			o.repeat(id, before, r)
		} else {
			o.firstCompletion(&first{id, begin, r})
		}
		o.completed[id] = r
		o.finish(id)
	}
}

func (o *ownership) repeat(id entryID, before, r *Record) {
	if before.Epoch == r.Epoch {
		o.violate(ClassRepeat, fmt.Sprintf("%s was completed twice under epoch %d", id, r.Epoch), before, r)
		return
	}
	// The smaller epoch may be the later one: its owner was stopped, and finished what it was in.
	old := o.terms[min(before.Epoch, r.Epoch)]
	if !o.excuse(old, r.At) {
		o.violate(ClassRepeat, fmt.Sprintf("%s was completed again although the handover was clean", id), before, r)
		return
	}
	o.c.report.Repeats++
}

func (o *ownership) firstCompletion(f *first) {
	m := o.c.messages[entry{o.place.stream, o.place.partition, f.id}]
	lane := ""
	switch o.c.opts.Lanes {
	case LaneKey:
		lane = m.key
	case LaneEvent:
		lane = f.id.String()
	}
	if o.c.vanished(entry{o.place.stream, o.place.partition, f.id}) {
		o.done[m] = true // the server on which it was has gone on for a while, and is no more
		return
	}
	w := o.c.wiped(f.end.log(), f.id, f.end.At)
	if l := o.lasts[lane]; w != nil && l != nil && w.last.compare(l.id) < 0 {
		return // a leftover, see there: what is after the wipe has begun
	} else if l != nil && f.id.compare(l.id) < 0 && !o.c.faults.flushed(l.begin.At, f.begin.At) {
		o.violate(ClassOrder, fmt.Sprintf("%s was first completed after %s", f.id, l.id), l.end, f.end)
	}
	o.lasts[lane] = f

	outcome := o.c.outcome[m]
	if outcome == Refused {
		o.violate(ClassRefused, fmt.Sprintf("key %q seq %d was refused and yet completed", m.key, m.seq), o.c.refusals[m], f.end)
	}
	if o.done[m] {
		return
	}
	o.done[m] = true
	if o.c.opts.Lanes == LaneEvent {
		return
	}
	if highest, seen := o.seqs[m.key]; seen && m.seq < highest {
		if outcome != Unknown {
			o.violate(ClassFIFO, fmt.Sprintf("key %q: seq %d was first completed after seq %d", m.key, m.seq, highest), f.end)
		}
		return
	}
	o.seqs[m.key] = m.seq
}

func (o *ownership) violate(class Class, what string, records ...*Record) {
	list := make([]Record, len(records))
	for i, r := range records {
		list[i] = *r
	}
	o.c.violate(class, o.place.String(), what, list...)
}
