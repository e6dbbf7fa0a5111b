package history

// failedOver says whether servers were failing over when something happened, or right
// before it, or soon after, and before to: if they had said it and not replicated it,
// it is gone.
func (c *checker) failedOver(from, to int64) bool {
	to = min(to, from+int64(c.opts.Aftermath))
	return c.failover(from, to) != nil
}

func (c *checker) failover(from, to int64) *trouble {
	for _, f := range c.faults {
		if (f.Fault == Failover || f.Fault == Split) && !f.void && f.until >= from-int64(c.opts.Slack) && f.At <= to {
			return f
		}
	}
	return nil
}

// vanished says whether an entry may be one that was seen at a server whose place
// another one took before it had it: the failover was while it was seen or soon after,
// nothing was heard of it when that was over, and nobody was told that it is in, or by
// servers of which not all need to know.
func (c *checker) vanished(e entry) bool {
	heard, known := c.heard[e]
	if !known {
		return false
	}
	f := c.failover(heard, heard+int64(c.opts.Aftermath))
	// Who had it in memory may go on with it for a while.
	if f == nil || c.lastSeen[e] > f.until && f.until > f.At || c.lastHeard[e] > f.until+int64(c.opts.Aftermath) {
		return false
	}
	return !c.told[e] || c.opts.Some && c.split(heard)
}

// split says whether two servers took themselves for the master at a moment, or right before: an
// owner whose lock the old one goes on to extend does not know of the one that the new one accepts.
func (c *checker) split(at int64) bool {
	for _, f := range c.faults {
		if f.Fault == Split && !f.void && f.At <= at && at <= f.until+int64(c.opts.Slack) {
			return true
		}
	}
	return false
}
