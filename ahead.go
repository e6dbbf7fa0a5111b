package runnel

// straight says that what a loop does with an event concerns nobody else: no
// middleware wraps its iterations and no time bounds them.
func (o *ProcessorOptions) straight() bool { return len(o.Middleware) == 0 && o.Timeout <= 0 }

// ahead answers the ask of a loop over single events, in the loop's own goroutine:
// the event before is done, the next one, if it is there, is taken and delivered,
// all as one turn of run does it. Changing goroutines there and back takes longer
// than all of this. What is out of the ordinary, and waiting, is left to run.
func (c *consumer[T]) ahead(w want) *delivery[T] {
	if !c.straight || !c.inside || w != c.want || w.n != 1 || w.keep || len(c.rest) > 0 {
		return nil
	}
	c.ack(c.events, false)
	c.events = c.events[:0] // settled
	if c.rest = c.src.Next(); len(c.rest) == 0 {
		c.scope.event.Store(nil)
		return nil
	}
	rest := c.rest
	c.form()
	// Next has looked at the lease just now; decoding takes its time.
	if c.bad != nil || !w.raw && !c.src.Holds() {
		c.rest, c.events = rest, c.events[:0]
		c.scope.event.Store(nil)
		return nil
	}
	c.decoded = false
	e := c.events[0]
	e.Attempt++
	c.scope.event.Store(e)
	c.out.events, c.out.records = c.events, c.records
	return &c.out
}
