package prefetch

// Delivered returns the ID of the last entry that the buffer has held, and how many entries
// there are up to it, -1 when unknown.
func (b *Buffer) Delivered() (position string, count int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.position, b.count
}

// Recount corrects the number of entries up to a position, if no entry came since.
func (b *Buffer) Recount(position string, count int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.position == position && count >= 0 {
		b.count = count
	}
}

// Held returns how many entries wait, their bytes, and how many are done and not acked, though they could be.
func (b *Buffer) Held() (waiting int, bytes int64, unacked int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queue.len(), b.queue.bytes, len(b.acks.flight) + b.acks.due()
}

// Owed are entries that were delivered and are not acked: the lowest that is with the
// consumer, and the lowest that waits for it. "" stands for none. Begun is the last one that the
// consumer may have begun, at least the committed one.
type Owed struct{ Taken, Waiting, Begun string }

// Owed returns the lowest entries that are not done, none after Close, and the last that was begun.
func (b *Buffer) Owed() Owed {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return Owed{Begun: b.acks.begun()}
	}
	return Owed{firstOf(b.acks.taken), b.queue.firstID(), b.acks.begun()}
}
