package worker

import (
	"slices"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// untake takes back the last entries that take gave: they come again.
func (b *buffer) untake(entries []redisconn.Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || len(entries) == 0 {
		return
	}
	back := make([]item, len(entries), len(entries)+len(b.items)-b.head)
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = e.ID
		back[i] = item{e, sizeOf(e), mono()}
		b.bytes += back[i].size
	}
	b.items, b.head = append(back, b.items[b.head:]...), 0
	b.strike(ids)
}

// moved notes that entries with the consumer were acked by another way than the
// acker, and returns how many they were.
func (b *buffer) moved(ids []string) (n int) {
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

// strike takes entries off those with the consumer; mu is held.
func (b *buffer) strike(ids []string) {
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

// confirm notes that n entries were acked, the last of them being last. The
// floor rises over them once nothing below them is open; mu is held.
func (b *buffer) confirm(last string, n int) {
	if b.top == "" || entryid.Compare(last, b.top) > 0 {
		b.top = last
	}
	b.above += int64(n)
	if b.gap {
		return
	}
	for _, open := range [][]string{b.taken, b.acking, b.flight} {
		if first := firstOf(open); first != "" && entryid.Compare(first, b.top) < 0 {
			return
		}
	}
	b.floor = b.top
	if b.read >= 0 {
		b.read += b.above
	}
	b.above = 0
}

// nudge makes take return.
func (b *buffer) nudge() {
	b.mu.Lock()
	b.nudged = true
	b.mu.Unlock()
	b.signal()
}
