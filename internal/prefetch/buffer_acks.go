package prefetch

import (
	"slices"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// Done moves entries from the consumer to the acker. tell reports that the acker had nothing
// before; hurry reports that half of what may be done and not acked now is. While an entry
// before these stays with the consumer, committed does not rise.
func (b *Buffer) Done(ids []string) (tell, hurry bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.settle(ids)
}

// Next is Done for one entry, and Await for one that is there already. It never blocks: ok
// is false where no entry waits, or where it may not be processed at now; with now 0 the
// caller asks for that itself.
func (b *Buffer) Next(done string, now int64) (e redisconn.Entry, ok, tell, hurry bool) {
	b.mu.Lock()
	tell, hurry = b.settle([]string{done})
	b.wants = 1
	b.skipLost()
	kick := false
	if !b.closed && b.wait(1, 0, now) == 0 && (now == 0 || b.cfg.Live(now) && b.cfg.MayRun(now)) {
		e, ok = b.popOne(), true
		b.wants = 0
		kick = b.wanting()
	}
	b.mu.Unlock()
	if kick {
		b.cfg.Wanted()
	}
	return e, ok, tell, hurry
}

// settle is Done; mu is held.
func (b *Buffer) settle(ids []string) (tell, hurry bool) {
	tell = len(b.acking) == 0
	hurry = 2*(len(b.acking)+len(ids)) >= b.unacked && 2*len(b.acking) < b.unacked
	mixed := !tell && entryid.Compare(b.acking[len(b.acking)-1], ids[0]) > 0
	if len(ids) == 1 { // as most often: it costs less
		b.acking = append(b.acking, ids[0])
	} else {
		b.acking = append(b.acking, ids...)
	}
	if mixed {
		slices.SortFunc(b.acking, entryid.Compare)
	}
	b.strike(ids)
	return tell, hurry
}

// TakeAcks hands at most n IDs to the acker, which answers with AcksConfirmed or AcksFailed
// before it takes more.
func (b *Buffer) TakeAcks(n int) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.flight) > 0 || len(b.acking) == 0 {
		return nil
	}
	if n >= len(b.acking) {
		b.flight, b.acking = b.acking, b.flight[:0]
		return b.flight
	}
	b.flight = append(b.flight[:0], b.acking[:n]...)
	b.acking = b.acking[:copy(b.acking, b.acking[n:])]
	return b.flight
}

// AcksConfirmed ends what TakeAcks began, and returns how many they were and whether more wait.
func (b *Buffer) AcksConfirmed() (n int, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = len(b.flight)
	if n > 0 {
		last := b.flight[n-1]
		b.removed = slices.DeleteFunc(b.removed, func(id string) bool { return slices.Contains(b.flight, id) })
		b.progress.remember(b.flight)
		b.flight = b.flight[:0]
		b.confirm(last, n)
	}
	b.Signal()
	return n, len(b.acking) > 0
}

// HasAcked reports whether all of ids are among the latest that were acked.
func (b *Buffer) HasAcked(ids []string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.progress.hasAcked(ids)
}

// RemovedOf returns those of the IDs whose data is gone.
func (b *Buffer) RemovedOf(ids []string) (out []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range b.removed {
		if slices.Contains(ids, id) {
			out = append(out, id)
		}
	}
	return out
}

// AcksFailed puts back what TakeAcks gave.
func (b *Buffer) AcksFailed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.acking = append(append(make([]string, 0, len(b.flight)+len(b.acking)), b.flight...), b.acking...)
	b.flight = b.flight[:0]
	if !slices.IsSortedFunc(b.acking, entryid.Compare) {
		slices.SortFunc(b.acking, entryid.Compare)
	}
}

// Flushed reports whether nothing waits for the acker.
func (b *Buffer) Flushed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.acking)+len(b.flight) == 0
}

// Checkpoint returns the committed position, and how many entries there are up to it.
func (b *Buffer) Checkpoint() (committed string, read int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.progress.committed, b.progress.read
}

// PendingBelow returns, as the end of a range, up to which ID all entries were done here, so
// that those still pending are acks that got lost: below the lowest entry held, and up to the
// position if none is held. ok is false when lowest, the lowest pending entry, is not below.
func (b *Buffer) PendingBelow(lowest string) (upTo string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || lowest == "" || entryid.Compare(lowest, b.position) > 0 {
		return "", false
	}
	held := ""
	for _, id := range []string{firstOf(b.flight), firstOf(b.acking), firstOf(b.taken), b.headID()} {
		if id != "" && (held == "" || entryid.Compare(id, held) < 0) {
			held = id
		}
	}
	if held == "" {
		return b.position, true
	}
	return "(" + held, entryid.Compare(lowest, held) < 0
}

func (b *Buffer) headID() string {
	if b.head == len(b.items) {
		return ""
	}
	return b.items[b.head].entry.ID
}

func firstOf(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return ids[0]
}
