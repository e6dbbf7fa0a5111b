package history

// vanished reports whether a failover may have lost an entry: it was seen during the failover or
// soon before, not heard of after that, and no sender was told that it is in, or only by servers of
// which not all need to confirm.
func (c *checker) vanished(e entry) bool {
	heard, known := c.heard[e]
	if !known || c.told[e] && !(c.opts.Some && c.faults.split(heard)) {
		return false
	}
	for _, f := range c.faults.list {
		if !f.failover(heard-slack, heard+aftermath) {
			continue
		}
		// Who had it in memory may go on with it for a while.
		found := f.until > f.At && c.lastSeen[e] > f.until || c.lastHeard[e] > f.until+aftermath
		if !found {
			return true
		}
	}
	return false
}
