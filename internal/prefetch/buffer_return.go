package prefetch

import (
	"slices"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// Untake takes back the last entries that Await returned: they come again.
func (b *Buffer) Untake(entries []redisconn.Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || len(entries) == 0 {
		return
	}
	back := make([]item, len(entries), len(entries)+len(b.items)-b.head)
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = e.ID
		back[i] = item{e, sizeOf(e), monotime.Now()}
		b.bytes += back[i].size
	}
	b.items, b.head = append(back, b.items[b.head:]...), 0
	b.strike(ids)
}

// Moved says that entries with the consumer were acked by a script, and not by the acker. It
// returns how many they were.
func (b *Buffer) Moved(ids []string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := len(b.taken)
	b.strike(ids)
	n = before - len(b.taken)
	if n > 0 {
		b.confirm(slices.MaxFunc(ids, entryid.Compare), n)
	}
	return n
}

// strike removes entries from those with the consumer; mu is held.
func (b *Buffer) strike(ids []string) {
	if len(ids) == len(b.taken) && ids[0] == b.taken[0] {
		b.taken = b.taken[:0]
		return
	}
	is := make(map[string]bool, len(ids))
	for _, id := range ids {
		is[id] = true
	}
	b.taken = slices.DeleteFunc(b.taken, func(id string) bool { return is[id] })
}

// confirm counts n acked entries, the last of them being last; mu is held.
func (b *Buffer) confirm(last string, n int) {
	b.progress.confirm(last, n, firstOf(b.taken), firstOf(b.acking), firstOf(b.flight))
}

// Interrupt makes Await return.
func (b *Buffer) Interrupt() {
	b.mu.Lock()
	b.interrupted = true
	b.mu.Unlock()
	b.Signal()
}
