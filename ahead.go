package runnel

// Where nothing stands between the loop and its events, a loop that asks for the
// next one need not be left for it: see consumer.ahead.

// straight says that what the loop does with an event concerns nobody else: no
// middleware wraps its iterations and no time bounds them.
func straight(middleware []Middleware, o *ProcessorOptions) bool {
	return len(middleware) == 0 && o.Timeout <= 0
}

// ahead answers the ask of a loop over single events, in the loop's own goroutine:
// the event before is done, the next one is taken and delivered, all as one turn
// of run does it. Changing goroutines there and back takes longer than all of this.
// What is out of the ordinary is left to run: then ahead says false, and run
// finds what was taken by next.
func (c *consumer[T]) ahead(w want) (d delivery[T], ok bool) {
	if !c.straight || !c.inside || w != c.want || w.n != 1 || w.keep {
		return d, false
	}
	c.ack(c.events, false)
	c.events = c.events[:0] // settled
	c.scope.event.Store(nil)
	c.end = c.next()
	c.made = true
	if c.end != nil || c.bad != nil {
		return d, false
	}
	// Take has looked at the lease just now; decoding takes its time. If it does not
	// hold, run will ask again, and is told the same.
	if !w.raw && !c.src.Holds() {
		return d, false
	}
	c.made, c.decoded = false, false
	e := c.events[0]
	e.Attempt++
	c.scope.event.Store(e)
	return delivery[T]{ctx: c.ctx, events: c.events, records: c.records}, true
}
