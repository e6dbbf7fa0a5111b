package prefetch

import (
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// A queue holds the entries that wait for the consumer, in their order.
type queue struct {
	items []item // from head on
	head  int
	bytes int64
}

type item struct {
	entry redisconn.Entry
	size  int64
	at    int64 // when it arrived, by monotime
}

func (q *queue) len() int { return len(q.items) - q.head }

// first returns the next item; there must be one.
func (q *queue) first() *item { return &q.items[q.head] }

func (q *queue) firstID() string {
	if q.len() == 0 {
		return ""
	}
	return q.first().entry.ID
}

func (q *queue) push(i item) {
	q.items = append(q.items, i)
	q.bytes += i.size
}

// pop takes the next entry; there must be one.
func (q *queue) pop() redisconn.Entry {
	next := q.first()
	e := next.entry
	q.bytes -= next.size
	*next = item{}
	q.head++
	switch {
	case q.head == len(q.items):
		q.items, q.head = q.items[:0], 0
	case q.head >= 1024 && q.head*2 >= len(q.items):
		q.items = q.items[:copy(q.items, q.items[q.head:])]
		q.head = 0
	}
	return e
}

// unpop puts entries back at the head of the queue.
func (q *queue) unpop(entries []redisconn.Entry, now int64) {
	back := make([]item, len(entries), len(entries)+q.len())
	for i, e := range entries {
		back[i] = item{e, sizeOf(e), now}
		q.bytes += back[i].size
	}
	q.items, q.head = append(back, q.items[q.head:]...), 0
}

func sizeOf(e redisconn.Entry) int64 {
	n := int64(len(e.ID))
	if data, ok := e.Values[store.PayloadField].(string); ok && len(e.Values) == 1 {
		return n + int64(len(store.PayloadField)+len(data)) // as most are; the loop takes longer
	}
	for name, v := range e.Values {
		n += int64(len(name))
		if s, ok := v.(string); ok {
			n += int64(len(s))
		}
	}
	return n
}
