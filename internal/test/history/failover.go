package history

// failedOver reports whether servers were failing over when something happened, or right
// before it, or soon after, and before to: if they had said it and not replicated it,
// it is gone.
func (c *checker) failedOver(from, to int64) bool {
	to = min(to, from+int64(c.opts.Aftermath))
	for _, f := range c.faults {
		if f.failover(from-int64(c.opts.Slack), to) {
			return true
		}
	}
	return false
}

// failover reports whether a fault is one, and in this time.
func (f *trouble) failover(from, to int64) bool {
	return (f.Fault == Failover || f.Fault == Split) && !f.void && f.until >= from && f.At <= to
}

// vanished reports whether an entry may be one that was seen at a server whose place
// another one took before it had it: the failover was while it was seen or soon after,
// nothing was heard of it when that was over, and nobody was told that it is in, or by
// servers of which not all need to know.
func (c *checker) vanished(e entry) bool {
	heard, known := c.heard[e]
	if !known || c.told[e] && !(c.opts.Some && c.split(heard)) {
		return false
	}
	for _, f := range c.faults {
		if !f.failover(heard-int64(c.opts.Slack), heard+int64(c.opts.Aftermath)) {
			continue
		}
		// Who had it in memory may go on with it for a while.
		found := f.until > f.At && c.lastSeen[e] > f.until || c.lastHeard[e] > f.until+int64(c.opts.Aftermath)
		if !found {
			return true
		}
	}
	return false
}

// split reports whether two servers took themselves for the master at a moment, or right before: an
// owner whose lock the old one goes on to extend does not know of the one that the new one accepts.
func (c *checker) split(at int64) bool {
	for _, f := range c.faults {
		if f.Fault == Split && !f.void && f.At <= at && at <= f.until+int64(c.opts.Slack) {
			return true
		}
	}
	return false
}
