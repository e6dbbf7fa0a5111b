// Package prefetch reads ahead: it holds the entries of one partition that were read and
// are not acked yet, and finds how many are worth reading ahead. It asks nothing but the
// clock, and never talks to Redis.
package prefetch

import (
	"io"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// A Buffer holds the entries of one partition between the fetcher, which fills it, the
// consumer, which empties it, and the acker, which confirms what was done. It has three
// parts, by age:
//
//	committed … acking … taken … items … position
//
// Everything up to committed is acked; acking is done, and sent or to be sent to the
// acker; taken is being processed; items wait. Everything behind position is still in
// Redis. Methods may be called concurrently, but those of the consumer (Await, Next, LetGo)
// and those of the acker (TakeAcks, AcksConfirmed, AcksFailed) by one goroutine each.
type Buffer struct {
	cfg   Config
	ready chan struct{} // something changed that the consumer may wait for; one token

	mu       sync.Mutex
	closed   bool
	capacity int // entries that may wait
	unacked  int // entries that may be done and not acked
	window   window
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

	taken       []string // IDs, ascending, with the consumer
	acking      []string // IDs, ascending, done and not yet with the acker
	flight      []string // IDs with the acker
	removed     []string // those of acking and flight whose data is gone
	count       int64    // entries up to position without lost ones, -1 when unknown
	interrupted bool     // Await should return, for something that is not an entry
	progress    progress
}

type item struct {
	entry redisconn.Entry
	size  int64
	at    int64 // when it arrived, by monotime
}

// A Config says what a buffer may hold and where it begins. Its functions must not block;
// those that are nil allow everything and are told nothing.
type Config struct {
	Capacity  int    // how many entries may wait, and as many may be done and not acked
	Adaptive  bool   // read ahead as many as are processed in about a second; else Capacity
	MaxBytes  int64  // of those that wait; one is held however large it is
	Committed string // the entry up to which all were acked
	Read      int64  // how many there are up to it without lost ones, -1 when unknown

	Live   func(now int64) bool // reports whether the lease holds; time is that of monotime
	MayRun func(now int64) bool // reports whether the function may run; Signal says that it may have changed
	Lost   func(id string)      // an entry is skipped because its data is gone; must not call the buffer
	Wanted func()               // there is room again for a partition that Room left out
}

// New returns an empty buffer.
func New(c Config) *Buffer {
	always := func(int64) bool { return true }
	if c.Live == nil {
		c.Live = always
	}
	if c.MayRun == nil {
		c.MayRun = always
	}
	if c.Lost == nil {
		c.Lost = func(string) {}
	}
	if c.Wanted == nil {
		c.Wanted = func() {}
	}
	return &Buffer{
		cfg: c, window: window{fixed: !c.Adaptive}, capacity: c.Capacity, unacked: c.Capacity,
		position: c.Committed, count: c.Read, progress: progress{committed: c.Committed, read: c.Read},
		ready: make(chan struct{}, 1),
	}
}

// Push adds what was read, as far as the bounds allow, but one entry at least when the
// buffer is empty, and returns the size of the largest entry in bytes. What does not fit is
// dropped: Redis holds it as pending, and it is read again from the consumer's history.
func (b *Buffer) Push(entries []redisconn.Entry) (largest int64) {
	if len(entries) == 0 {
		return 0
	}
	now := monotime.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0
	}
	b.refused = 0
	for _, e := range entries {
		size := sizeOf(e)
		largest = max(largest, size)
		if held := len(b.items) - b.head; held > 0 && (b.bytes+size > b.cfg.MaxBytes || held >= b.capacity) {
			b.behind, b.refused = true, size
			break
		}
		b.items = append(b.items, item{e, size, now})
		b.window.got++
		b.bytes += size
		b.position = e.ID
		if b.count >= 0 {
			b.count++
		}
	}
	b.Signal()
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

// Room returns how many entries of size bytes may be read now, at most target. Where that
// is 0, Wanted is called once there is room worth a read. behind reports whether Redis has
// delivered entries that the buffer has dropped.
func (b *Buffer) Room(size int64, target int, now int64) (n int, behind bool) {
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
	b.window.adapt(age, b.capacity)
	n = b.roomLocked(size, target)
	b.left = n == 0
	if b.left && b.wants > len(b.items)-b.head {
		b.Signal() // by this size it is full: what the consumer waits for may not come
	}
	return n, b.behind
}

func (b *Buffer) roomLocked(size int64, target int) int {
	held, ahead := len(b.items)-b.head, max(b.window.ahead, b.wants)
	if held == 0 {
		return max(1, min(target, ahead, int(b.cfg.MaxBytes/max(size, 1))))
	}
	if b.bytes+b.refused > b.cfg.MaxBytes {
		return 0 // what comes next would be refused again
	}
	n := min(ahead-held, int((b.cfg.MaxBytes-b.bytes)/max(size, 1)))
	if b.wants <= held && n < min(target, ahead/2) {
		return 0
	}
	return max(0, min(n, target))
}

// SetBehind reports whether Redis may have delivered entries that the buffer does not hold.
func (b *Buffer) SetBehind(behind bool) {
	b.mu.Lock()
	b.behind = behind
	b.mu.Unlock()
}

// Last returns the ID of the last entry that the buffer has held.
func (b *Buffer) Last() (position string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.position
}

// Ready receives after something changed that the consumer may wait for.
func (b *Buffer) Ready() <-chan struct{} { return b.ready }

// Await blocks until n entries wait, until the first of them has waited for within, or until
// no more fit, and returns them: they are with the consumer until Done, Moved or Untake.
// Where most is not negative it blocks for at most that long; then, or after Interrupt, it
// returns none. io.EOF: the lease is over, or the buffer was closed. The slice is valid
// until LetGo.
func (b *Buffer) Await(n int, within, most time.Duration) ([]redisconn.Entry, error) {
	now := monotime.Now()
	b.LetGo()
	for began := now; ; now = monotime.Now() {
		b.mu.Lock()
		b.capacity, b.unacked = max(b.capacity, n), max(b.unacked, n)
		b.wants = n
		b.skipLost()
		if b.closed || !b.cfg.Live(now) {
			b.mu.Unlock()
			return nil, io.EOF
		}
		wait := b.wait(n, within, now)
		if wait == 0 && !b.cfg.MayRun(now) {
			wait = -1
		}
		if wait == 0 {
			out := b.pop(n)
			b.wants = 0
			kick := b.wanting()
			b.mu.Unlock()
			if kick {
				b.cfg.Wanted()
			}
			return out, nil
		}
		kick := b.wanting() // n may have made the capacity larger
		nudged := b.interrupted
		b.interrupted = false
		b.mu.Unlock()
		if kick {
			b.cfg.Wanted()
		}
		if most >= 0 {
			left := most - time.Duration(monotime.Now()-began)
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

// wanting reports, once, that Room left this partition out and there is room again.
func (b *Buffer) wanting() bool {
	if !b.left || b.roomLocked(b.size, b.target) == 0 {
		return false
	}
	b.left = false
	return true
}

// wait returns how long the consumer has to wait for its n entries: 0 not at all, -1 until
// something changes.
func (b *Buffer) wait(n int, within time.Duration, now int64) time.Duration {
	held := len(b.items) - b.head
	switch {
	case held == 0, len(b.acking)+len(b.flight) >= b.unacked:
		return -1
	case held >= n, b.bytes+max(b.size, b.refused) > b.cfg.MaxBytes:
		return 0
	}
	left := time.Duration(b.items[b.head].at-now) + within
	return max(left, 0)
}

// LetGo releases the entries that Await returned last.
func (b *Buffer) LetGo() {
	clear(b.out)
	b.out = b.out[:0]
}

func (b *Buffer) pop(n int) []redisconn.Entry {
	for n = min(n, len(b.items)-b.head); n > 0 && b.items[b.head].entry.Values != nil; n-- { // skipLost takes those without, in their turn
		b.out = append(b.out, b.popOne())
	}
	return b.out
}

// popOne takes the next entry, which has values.
func (b *Buffer) popOne() redisconn.Entry {
	next := &b.items[b.head]
	e := next.entry
	b.taken = append(b.taken, e.ID)
	b.bytes -= next.size
	*next = item{}
	b.advance(1)
	return e
}

func (b *Buffer) advance(n int) {
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
func (b *Buffer) skipLost() {
	for b.head < len(b.items) && b.items[b.head].entry.Values == nil {
		id := b.items[b.head].entry.ID
		b.bytes -= b.items[b.head].size
		b.items[b.head] = item{}
		b.advance(1)
		b.acking = append(b.acking, id)
		b.removed = append(b.removed, id)
		b.cfg.Lost(id)
	}
}

// Close drops what waits and ends Await.
func (b *Buffer) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.items, b.head, b.bytes = nil, 0, 0
	b.Signal()
}

// Signal has Await look again whether the lease holds and the function may run.
func (b *Buffer) Signal() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}
