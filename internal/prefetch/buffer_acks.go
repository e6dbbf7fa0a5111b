package prefetch

import (
	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// Done moves entries from the consumer to the acker. tell reports whether the acker had nothing
// before; hurry reports whether half of the entries that may be done and not acked now are. While
// an entry before these stays with the consumer, committed does not rise.
func (b *Buffer) Done(ids []string) (tell, hurry bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.acks.done(ids)
}

// Next is Done for one entry, and Await for one that is there already. It never blocks:
// ok is false if no entry waits, or if the entry may not be processed at now. With now 0
// the caller checks that itself.
func (b *Buffer) Next(done string, now int64) (e redisconn.Entry, ok, tell, hurry bool) {
	b.mu.Lock()
	tell, hurry = b.acks.done([]string{done})
	b.room.wants = 1
	b.skipLost()
	wake := false
	if !b.closed && b.wait(1, 0, now) == 0 && (now == 0 || b.cfg.Live(now) && b.cfg.MayRun(now)) {
		e, ok = b.queue.pop(), true
		b.acks.taken = append(b.acks.taken, e.ID)
		b.room.wants = 0
		wake = b.room.regained(&b.queue)
	}
	b.mu.Unlock()
	if wake {
		b.cfg.Wanted()
	}
	return e, ok, tell, hurry
}

// Untake takes back the last entries that Await returned; Await returns them again.
func (b *Buffer) Untake(entries []redisconn.Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || len(entries) == 0 {
		return
	}
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = e.ID
	}
	b.queue.unpop(entries, monotime.Now())
	b.acks.strike(ids)
}

// Moved counts entries with the consumer that a script, not the acker, has acked. It returns their
// number; by position 0, as they are acked when the position has passed them, for which the acker is to be told.
func (b *Buffer) Moved(ids []string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.acks.moved(ids)
}

// TakeAcks hands at most n IDs, none behind upTo unless that is "", to the acker, which answers with AcksConfirmed or AcksFailed before it takes
// more. removed are the IDs of those whose data is gone. By position all entries up to the last of them are done,
// removed are those of Moved, and after AcksFailed the same are returned again, since their position may be stored.
func (b *Buffer) TakeAcks(n int, upTo string) (ids, removed []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ids = b.acks.take(n, upTo)
	return ids, b.acks.removedOf(ids)
}

// AcksConfirmed ends the acks of the last TakeAcks. It returns their number, and reports
// whether more wait.
func (b *Buffer) AcksConfirmed() (n int, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = b.acks.confirmed()
	b.Signal()
	return n, b.acks.due() > 0
}

// AcksFailed puts what the last TakeAcks returned back.
func (b *Buffer) AcksFailed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.acks.failed()
}

// HasAcked reports whether all of ids are among the latest that were acked.
func (b *Buffer) HasAcked(ids []string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.acks.progress.hasAcked(ids)
}

// Checkpoint returns the committed position, and how many entries there are up to it.
func (b *Buffer) Checkpoint() (committed string, read int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.acks.progress.committed, b.acks.progress.read
}

// PendingBelow finds lost acks. All entries up to upTo, the end of a range, were done here, so
// those still pending were acked in vain: upTo is below the lowest entry held, or the position if
// none is held. ok is false when lowest, the lowest pending entry, is not below.
func (b *Buffer) PendingBelow(lowest string) (upTo string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || lowest == "" || entryid.Compare(lowest, b.position) > 0 {
		return "", false
	}
	held := b.acks.lowest(b.queue.firstID())
	if held == "" {
		return b.position, true
	}
	return "(" + held, entryid.Compare(lowest, held) < 0
}
