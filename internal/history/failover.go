package history

// failedOver says whether servers were failing over at some moment of a time, or right
// before it: what they had said and not replicated is gone.
func (c *checker) failedOver(from, to int64) bool {
	for _, f := range c.faults {
		if (f.Fault == Failover || f.Fault == Split) && f.until >= from-int64(c.opts.Slack) && f.At <= to {
			return true
		}
	}
	return false
}

// vanished says whether an entry may be one that was seen at a server whose place
// another one took before it had it: the failover was while it was seen or soon after,
// and nobody was told that it is in, or by servers of which not all need to know.
func (c *checker) vanished(e entry) bool {
	heard, known := c.heard[e]
	if c.told[e] {
		return c.opts.Some && c.split(heard)
	}
	return known && c.failedOver(heard, heard+int64(c.opts.Aftermath))
}

// split says whether two servers took themselves for the master at a moment, or right before: an
// owner whose lock the old one goes on to extend does not know of the one that the new one accepts.
func (c *checker) split(at int64) bool {
	for _, f := range c.faults {
		if f.Fault == Split && f.At <= at && at <= f.until+int64(c.opts.Slack) {
			return true
		}
	}
	return false
}
