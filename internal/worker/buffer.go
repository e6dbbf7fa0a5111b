package worker

import (
	"io"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// began anchors mono.
var began = time.Now()

// mono is the time on the monotonic clock, in nanoseconds since some moment. It
// goes on while the process is stopped.
func mono() int64 { return int64(time.Since(began)) }

// A buffer stands between the fetcher, which fills it, the consumer, which
// empties it, and the acker, which confirms what was done. It holds what this
// tenure has been given of its partition, in three parts by age:
//
//	floor … acking … taken … items … position
//
// acked up to the floor; sent or to be sent to the acker; being processed;
// waiting. Behind position everything is still with Redis.
type buffer struct {
	maxBytes int64
	live     func(now int64) bool // the lease holds
	mayRun   func(now int64) bool // the function may run; if not, ready tells when that may have changed
	lost     func(id string)      // an entry is skipped because its data is gone; mu is held
	kick     func()               // tells the fetcher that there is room again
	ready    chan struct{}        // something changed that the consumer may wait for; one token

	mu       sync.Mutex
	closed   bool
	capacity int // entries that may wait
	unacked  int // entries that may be done and not acked
	pace     pace
	items    []item // from head on
	head     int
	bytes    int64
	size     int64  // what the next entry is taken to measure
	target   int    // how many entries a read should bring
	wants    int    // entries that the consumer waits for, 0: it does not wait
	refused  int64  // size of the entry that did not fit last, 0: none
	left     bool   // the fetcher left this partition out for want of room
	behind   bool   // the server has given us entries behind position that we do not hold
	position string // ID of the last entry held
	out      []redisconn.Entry

	taken   []string // IDs, ascending, with the consumer
	acking  []string // IDs, ascending, done and not yet with the acker
	flight  []string // IDs with the acker
	removed []string // those of acking and flight whose data is gone
	floor   string
	read    int64    // number of entries up to the floor without lost ones, -1 when unknown
	count   int64    // the same up to position
	gap     bool     // an entry behind the floor stays unacked, so that the floor stays
	top     string   // the largest ID that was confirmed
	above   int64    // how many confirmed entries are behind the floor
	nudged  bool     // take should return, for something that is not an entry
	latest  []string // IDs that the acker has confirmed, the latest ones, as a ring
	oldest  int      // where the next one goes once it is full
}

type item struct {
	entry redisconn.Entry
	size  int64
	at    int64 // when it arrived, by mono
}

func newBuffer(capacity int, adapt bool, maxBytes int64, floor string, read int64) *buffer {
	return &buffer{
		pace:     pace{fixed: !adapt},
		mayRun:   func(int64) bool { return true },
		maxBytes: maxBytes, capacity: capacity, unacked: capacity, position: floor, floor: floor, read: read, count: read,
		ready: make(chan struct{}, 1),
	}
}

// push adds what was read, as far as the bytes allow but one entry at least
// when it is empty. The rest is dropped here: it is pending, and comes again
// from our own history. It returns the size of the largest entry.
func (b *buffer) push(entries []redisconn.Entry) (largest int64) {
	if len(entries) == 0 {
		return 0
	}
	now := mono()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0
	}
	b.refused = 0
	for _, e := range entries {
		size := sizeOf(e)
		largest = max(largest, size)
		if held := len(b.items) - b.head; held > 0 && (b.bytes+size > b.maxBytes || held >= b.capacity) {
			b.behind, b.refused = true, size
			break
		}
		b.items = append(b.items, item{e, size, now})
		b.pace.got++
		b.bytes += size
		b.position = e.ID
		if b.count >= 0 {
			b.count++
		}
	}
	b.signal()
	return largest
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

// room is how many entries of that size may be read, 0 if it is not worth a
// read yet: then kick is called when it is.
func (b *buffer) room(size int64, target int, now int64) (n int, behind bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, false
	}
	b.size, b.target = size, target
	var age time.Duration
	if b.head < len(b.items) {
		age = time.Duration(now - b.items[b.head].at)
	}
	b.pace.adapt(age, b.capacity)
	n = b.roomLocked(size, target)
	b.left = n == 0
	if b.left && b.wants > len(b.items)-b.head {
		b.signal() // by this size it is full: what the consumer waits for may not come
	}
	return n, b.behind
}

func (b *buffer) roomLocked(size int64, target int) int {
	held, ahead := len(b.items)-b.head, max(b.pace.ahead, b.wants)
	if held == 0 {
		return max(1, min(target, ahead, int(b.maxBytes/max(size, 1))))
	}
	if b.bytes+b.refused > b.maxBytes {
		return 0 // what comes next would be refused again
	}
	n := min(ahead-held, int((b.maxBytes-b.bytes)/max(size, 1)))
	if b.wants <= held && n < min(target, ahead/2) {
		return 0
	}
	return max(0, min(n, target))
}

// setBehind notes whether the server may have given us entries behind position.
func (b *buffer) setBehind(behind bool) {
	b.mu.Lock()
	b.behind = behind
	b.mu.Unlock()
}

func (b *buffer) last() (position string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.position
}

// take is Source.Take for one that nudge does not disturb.
func (b *buffer) take(n int, within time.Duration) ([]redisconn.Entry, error) {
	return b.await(n, within, -1)
}

// await waits for entries as Source.Take does, but at most that long, where most
// is not negative, and until nudge. Then it returns none.
func (b *buffer) await(n int, within, most time.Duration) ([]redisconn.Entry, error) {
	now := mono()
	b.letGo()
	for began := now; ; now = mono() {
		b.mu.Lock()
		b.capacity, b.unacked = max(b.capacity, n), max(b.unacked, n)
		b.wants = n
		b.skipLost()
		if b.closed || !b.live(now) {
			b.mu.Unlock()
			return nil, io.EOF
		}
		wait := b.wait(n, within, now)
		if wait == 0 && !b.mayRun(now) {
			wait = -1
		}
		if wait == 0 {
			out := b.pop(n)
			b.wants = 0
			kick := b.wanting()
			b.mu.Unlock()
			if kick {
				b.kick()
			}
			return out, nil
		}
		kick := b.wanting() // n may have made the capacity larger
		nudged := b.nudged
		b.nudged = false
		b.mu.Unlock()
		if kick {
			b.kick()
		}
		if most >= 0 {
			left := most - time.Duration(mono()-began)
			nudged = nudged || left <= 0
			if wait < 0 || left < wait {
				wait = left
			}
		}
		if nudged {
			return nil, nil
		}
		if wait < 0 {
			<-b.ready
			continue
		}
		t := time.NewTimer(wait)
		select {
		case <-b.ready:
		case <-t.C:
		}
		t.Stop()
	}
}

// wanting says, once, that the fetcher left this partition out and there is room
// again.
func (b *buffer) wanting() bool {
	if !b.left || b.roomLocked(b.size, b.target) == 0 {
		return false
	}
	b.left = false
	return true
}

// wait is how long the consumer has to wait for its n entries: 0 not at all,
// -1 until something changes.
func (b *buffer) wait(n int, within time.Duration, now int64) time.Duration {
	held := len(b.items) - b.head
	switch {
	case held == 0, len(b.acking)+len(b.flight) >= b.unacked:
		return -1
	case held >= n, b.bytes+max(b.size, b.refused) > b.maxBytes:
		return 0
	}
	left := time.Duration(b.items[b.head].at-now) + within
	return max(left, 0)
}

// letGo lets go of what pop returned before; of the consumer.
func (b *buffer) letGo() {
	clear(b.out)
	b.out = b.out[:0]
}

func (b *buffer) pop(n int) []redisconn.Entry {
	for n = min(n, len(b.items)-b.head); n > 0 && b.items[b.head].entry.Values != nil; n-- { // skipLost takes those without, in their turn
		b.out = append(b.out, b.popOne())
	}
	return b.out
}

// popOne takes the next entry, which has values.
func (b *buffer) popOne() redisconn.Entry {
	next := &b.items[b.head]
	e := next.entry
	b.taken = append(b.taken, e.ID)
	b.bytes -= next.size
	*next = item{}
	b.advance(1)
	return e
}

func (b *buffer) advance(n int) {
	b.head += n
	switch {
	case b.head == len(b.items):
		b.items, b.head = b.items[:0], 0
	case b.head >= 1024 && b.head*2 >= len(b.items):
		b.items = b.items[:copy(b.items, b.items[b.head:])]
		b.head = 0
	}
}

// skipLost passes over entries whose data is gone: they were deleted while they
// were pending. They are reported and acked, in their turn.
func (b *buffer) skipLost() {
	for b.head < len(b.items) && b.items[b.head].entry.Values == nil {
		id := b.items[b.head].entry.ID
		b.bytes -= b.items[b.head].size
		b.items[b.head] = item{}
		b.advance(1)
		b.acking = append(b.acking, id)
		b.removed = append(b.removed, id)
		b.lost(id)
	}
}

// close drops what waits and ends take.
func (b *buffer) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.items, b.head, b.bytes = nil, 0, 0
	b.signal()
}

func (b *buffer) signal() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}
