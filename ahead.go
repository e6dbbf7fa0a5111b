package runnel

import (
	"github.com/runnel-go/runnel/internal/redisconn"
)

// straight reports whether only the loop is concerned with an event: no middleware wraps
// its iterations and no Timeout bounds them.
func (o *ProcessorOptions) straight() bool { return len(o.Middleware) == 0 && o.Timeout <= 0 }

// ahead answers the request of a loop over single events, in the loop's own goroutine. It
// does what one turn of run does: it finishes the previous event, and takes and delivers
// the next one if there is one. Switching goroutines there and back takes longer than all
// of this; so does storing a pointer that is stored already, as each store costs extra
// during garbage collection. Waiting, and everything out of the ordinary, is left to run.
func (c *consumer[T]) ahead(w want) *delivery[T] {
	if !c.straight || !c.inside || w != c.want || w.n != 1 || w.keep || len(c.rest) > 0 || len(c.events) != 1 || c.takes > smallRecord {
		return nil
	}
	if !c.atomic.goesOn() {
		return nil
	}
	// Decoding takes its time: Holds is called after it.
	entry, ok := c.src.Next(c.events[0].ID, w.raw)
	if !ok {
		c.events = c.events[:0] // settled
		c.scope.event.Store(nil)
		return nil
	}
	if c.atomic.due(entry.ID) {
		return c.leave(entry)
	}
	e := c.event(entry, 0)
	if !c.fresh { // what follows a new event is new
		c.history(e)
		c.fresh = !e.Redelivered
	}
	if !w.raw && !c.decodeOne(e) {
		return c.leave(entry)
	}
	e.Attempt++
	c.atomic.next(e)
	c.events[0] = e // out.events and batch.Events are the same list
	c.scope.event.Store(e)
	return &c.out
}

// leave leaves an entry that was taken to run.
func (c *consumer[T]) leave(entry redisconn.Entry) *delivery[T] {
	c.rest, c.events = []redisconn.Entry{entry}, c.events[:0]
	c.scope.event.Store(nil)
	return nil
}

// decodeOne decodes an event to where the loop finds its record, and reports whether the
// event may be delivered to the loop.
func (b *batcher[T]) decodeOne(e *Event) bool {
	b.decoded = false
	var zero T
	b.out.records[0] = zero
	_, err := b.stream.encoding.decodeOnce(e, &b.out.records[0], min(b.stream.effective.MaxRecord, smallRecord))
	return err == nil && b.src.Holds()
}
