package history

// vanished reports whether an entry may be one that was seen at a server whose place
// another one took before it had it: the failover was while it was seen or soon after,
// nothing was heard of it when that was over, and no sender was told that it is in, or by
// servers of which not all need to know.
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
