package runnel

import (
	"github.com/runnel-go/runnel/internal/redisconn"
)

// straight says that what a loop does with an event concerns nobody else: no
// middleware wraps its iterations and no time bounds them.
func (o *ProcessorOptions) straight() bool { return len(o.Middleware) == 0 && o.Timeout <= 0 }

// ahead answers the ask of a loop over single events, in the loop's own goroutine:
// the event before is done, the next one, if it is there, is taken and delivered,
// all as one turn of run does it. Changing goroutines there and back takes longer
// than all of this, and so does storing a pointer again that is there: while garbage
// is collected each one costs extra. What is out of the ordinary, and waiting, is
// left to run.
func (c *consumer[T]) ahead(w want) *delivery[T] {
	if !c.straight || !c.inside || w != c.want || w.n != 1 || w.keep || len(c.rest) > 0 || len(c.events) != 1 || c.takes > smallRecord {
		return nil
	}
	// Decoding takes its time: then Holds is asked behind it.
	entry, ok := c.src.Next(c.events[0].ID, w.raw)
	if !ok {
		c.events = c.events[:0] // settled
		c.scope.event.Store(nil)
		return nil
	}
	e := c.event(entry, 0)
	if !c.fresh { // what comes behind a new event is new
		c.history(e)
		c.fresh = !e.Redelivered
	}
	if !w.raw && !c.decodeOne(e) {
		c.rest, c.events = []redisconn.Entry{entry}, c.events[:0]
		c.scope.event.Store(nil)
		return nil
	}
	e.Attempt++
	c.events[0] = e // out.events and batch.Events are the same list
	c.scope.event.Store(e)
	return &c.out
}

// decodeOne decodes an event where the loop finds its record, and reports whether the
// loop may have it.
func (b *batcher[T]) decodeOne(e *Event) bool {
	b.decoded = false
	var zero T
	b.out.records[0] = zero
	_, err := b.stream.decodeOnce(e, &b.out.records[0], min(b.stream.effective.MaxRecord, smallRecord))
	return err == nil && b.src.Holds()
}
