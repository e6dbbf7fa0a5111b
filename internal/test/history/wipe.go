package history

import "math"

// wipe is a moment at which one partition lost everything.
type wipe struct {
	last entryID
	from int64 // when it was about to happen
	to   int64 // when it was known what it took
}

// log is the partition that a record is about, for all processors.
func (r *Record) log() place { return place{stream: r.Stream, partition: r.Partition} }

func (e entry) log() place { return place{stream: e.stream, partition: e.partition} }

// learnWiped records what a wipe took. The fault before it marks its begin.
func (c *checker) learnWiped(r *Record) {
	id, _ := parseID(r.IDs[0])
	w := &wipe{id, r.At, r.At}
	for _, f := range c.faults.list {
		if f.Fault == Wipe && f.At <= r.At {
			w.from = f.At
		}
	}
	c.wipes[r.log()] = append(c.wipes[r.log()], w)
}

// wiped reports whether an entry was taken away by a wipe that had begun at some moment, and at which one.
func (c *checker) wiped(log place, id entryID, now int64) (by *wipe) {
	for _, w := range c.wipes[log] {
		if w.from <= now && id.compare(w.last) <= 0 {
			return w
		}
	}
	return nil
}

// taken reports whether an entry that waited was taken away by a wipe.
func (c *checker) taken(e entry) bool { return c.wiped(e.log(), e.id, math.MaxInt64) != nil }

// life counts the wipes before an entry: one excuses that the event is sent, and there, again.
func (c *checker) life(e entry) (n int) {
	for _, w := range c.wipes[e.log()] {
		if w.last.compare(e.id) < 0 {
			n++
		}
	}
	return n
}

// leftover reports whether the events of an iteration were wiped shortly before: a worker that
// holds them in memory notices with its next refresh, since the locks are gone, too.
func (o *ownership) leftover(r *Record, ids []entryID) bool {
	for _, id := range ids {
		w := o.c.wiped(r.log(), id, r.At)
		if w == nil || r.At > w.to+aftermath {
			return false
		}
	}
	return true
}
