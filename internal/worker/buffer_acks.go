package worker

import (
	"slices"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// done moves entries from the consumer to the acker, and reports whether the acker
// has to be told, and whether it has to hurry: half of what may be done and not
// acked is.
func (b *buffer) done(ids []string, gap bool) (tell, hurry bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gap = b.gap || gap
	return b.settle(ids)
}

// next is done for one entry, and take for one that is there and may be processed
// now, by mono; at 0 the caller will ask for that itself.
func (b *buffer) next(done string, now int64) (e redisconn.Entry, ok, tell, hurry bool) {
	b.mu.Lock()
	tell, hurry = b.settle([]string{done})
	b.wants = 1
	b.skipLost()
	kick := false
	if !b.closed && b.wait(1, 0, now) == 0 && (now == 0 || b.live(now) && b.mayRun(now)) {
		e, ok = b.popOne(), true
		b.wants = 0
		kick = b.wanting()
	}
	b.mu.Unlock()
	if kick {
		b.kick()
	}
	return e, ok, tell, hurry
}

// settle is done; mu is held.
func (b *buffer) settle(ids []string) (tell, hurry bool) {
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

// acks hands at most n IDs to the acker, which answers with acked or again.
func (b *buffer) acks(n int) []string {
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

// acked settles what acks gave; more says that there is more.
func (b *buffer) acked() (n int, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = len(b.flight)
	if n > 0 {
		last := b.flight[n-1]
		b.removed = slices.DeleteFunc(b.removed, func(id string) bool { return slices.Contains(b.flight, id) })
		b.remember(b.flight)
		b.flight = b.flight[:0]
		b.confirm(last, n)
	}
	b.signal()
	return n, len(b.acking) > 0
}

// remembered is how many acked entries of a partition are remembered: what a failover
// may forget at once without a repeat.
const remembered = 256

// remember notes IDs that were acked; mu is held.
func (b *buffer) remember(ids []string) {
	for _, id := range ids[max(0, len(ids)-remembered):] {
		if len(b.latest) < remembered {
			b.latest = append(b.latest, id)
			continue
		}
		b.latest[b.oldest] = id
		b.oldest = (b.oldest + 1) % remembered
	}
}

// hasAcked reports whether all of these are among the latest that were acked.
func (b *buffer) hasAcked(ids []string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := make(map[string]bool, len(b.latest))
	for _, id := range b.latest {
		known[id] = true
	}
	return !slices.ContainsFunc(ids, func(id string) bool { return !known[id] })
}

// removedOf returns those of the IDs whose data is gone.
func (b *buffer) removedOf(ids []string) (out []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range b.removed {
		if slices.Contains(ids, id) {
			out = append(out, id)
		}
	}
	return out
}

// again puts back what acks gave.
func (b *buffer) again() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.acking = append(append(make([]string, 0, len(b.flight)+len(b.acking)), b.flight...), b.acking...)
	b.flight = b.flight[:0]
	if !slices.IsSortedFunc(b.acking, entryid.Compare) {
		slices.SortFunc(b.acking, entryid.Compare)
	}
}

// flushed reports whether nothing waits for the acker.
func (b *buffer) flushed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.acking)+len(b.flight) == 0
}

// checkpoint is the floor and how many entries there are up to it.
func (b *buffer) checkpoint() (floor string, read int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.floor, b.read
}

// strays is up to which ID pending entries must have been acked by us already:
// everything below the lowest that we hold, and up to position if we hold none.
// ok is false when lowest, the lowest pending one, is not below that.
func (b *buffer) strays(lowest string) (upTo string, ok bool) {
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

func (b *buffer) headID() string {
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
