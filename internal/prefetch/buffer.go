// Package prefetch reads ahead: it holds the entries of one partition that were read and are not
// acked yet, and decides how many to read ahead. It reads the clock, and never calls Redis.
package prefetch

import (
	"io"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// A Buffer holds the entries of one partition between the fetcher, which fills it, the
// consumer, which empties it, and the acker, which confirms the entries that are done. It
// has three parts, by age:
//
//	committed … acking … taken … queue … position
//
// Entries up to committed are acked; those in acking are done, and sent or to be sent to
// the acker; those in taken are being processed; those in the queue wait. Entries after
// position are still in Redis. Methods may be called concurrently, except that the
// methods of the consumer (Await, Next) and those of the acker (TakeAcks, AcksConfirmed,
// AcksFailed) need one goroutine each.
type Buffer struct {
	cfg   Config
	ready chan struct{} // a change that the consumer may wait for; one token

	mu          sync.Mutex
	closed      bool
	queue       queue
	acks        acks
	room        room
	behind      bool   // the server has delivered entries after position that the buffer does not hold
	position    string // ID of the last entry held
	count       int64  // entries up to position without lost ones, -1 when unknown
	interrupted bool   // Await should return, for something that is not an entry
	out         []redisconn.Entry
}

// A Config sets the bounds of a buffer and where it begins. Its functions must not block;
// a nil function allows everything, and is not called.
type Config struct {
	Capacity  int    // maximum of entries that wait, and of those that are done and not acked
	Adaptive  bool   // read ahead as many as are processed in about a second; else Capacity
	MaxBytes  int64  // of the entries that wait; one is held however large it is
	Committed string // ID up to which all entries are acked
	Read      int64  // number of entries up to Committed without lost ones, -1 if unknown

	// ByPosition means that Redis does not keep what it has delivered: what does not fit is read once more
	// behind Last, and one position acks all entries up to it; see TakeAcks.
	ByPosition bool

	Live   func(now int64) bool // reports whether the lease holds; time is that of monotime
	MayRun func(now int64) bool // reports whether the function may run; call Signal after a change
	Lost   func(id string)      // called when an entry is skipped because its data is gone; must not call the buffer
	Wanted func()               // called when there is room again after Room returned 0
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
	b := &Buffer{
		cfg: c, ready: make(chan struct{}, 1), position: c.Committed, count: c.Read,
		room: room{capacity: c.Capacity, maxBytes: c.MaxBytes, window: window{fixed: !c.Adaptive}},
		acks: acks{most: c.Capacity, byPosition: c.ByPosition, progress: progress{committed: c.Committed, read: c.Read}},
	}
	b.acks.queue = &b.queue
	return b
}

// Push adds entries that were read, as far as the bounds allow, but at least one if the buffer is
// empty. It returns the size of the largest entry in bytes. Entries that do not fit are dropped: Redis
// holds them as pending, and they are read again from the consumer's history; by position, behind Last.
func (b *Buffer) Push(entries []redisconn.Entry) (largest int64) {
	if len(entries) == 0 {
		return 0
	}
	now := monotime.Now()
	defer b.Signal() // behind the lock, which the consumer needs at once
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0
	}
	b.room.refused = 0
	for _, e := range entries {
		size := sizeOf(e)
		largest = max(largest, size)
		if b.room.refuses(size, &b.queue) {
			b.behind = !b.cfg.ByPosition
			break
		}
		b.queue.push(item{e, size, now})
		b.room.window.got++
		b.position = e.ID
		if b.count >= 0 {
			b.count++
		}
	}
	return largest
}

// Room returns how many entries of size bytes may be read now, at most target. If n is 0,
// Wanted is called once there is room worth a read. behind reports whether Redis has
// delivered entries that the buffer has dropped.
func (b *Buffer) Room(size int64, target int, now int64) (n int, behind bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, false
	}
	b.room.size, b.room.target = size, target
	var age time.Duration
	if b.queue.len() > 0 {
		age = time.Duration(now - b.queue.first().at)
	}
	b.room.window.adapt(age, b.room.capacity)
	n = b.room.free(&b.queue)
	b.room.left = n == 0
	if b.room.left && b.room.wants > b.queue.len() {
		b.Signal() // by this size the buffer is full: the entries that the consumer waits for may not come
	}
	return n, b.behind
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

// Ready returns a channel that receives after a change that the consumer may wait for.
func (b *Buffer) Ready() <-chan struct{} { return b.ready }

// Await blocks until n entries wait, until the first of them has waited for within, or until no
// more fit. The returned entries are with the consumer until Done, Moved or Untake. If most is not
// negative, Await blocks for at most that long; then, or after Interrupt, it returns no entries. It
// returns io.EOF if the lease is over or the buffer was closed. The slice is valid until the next
// call.
func (b *Buffer) Await(n int, within, most time.Duration) ([]redisconn.Entry, error) {
	now := monotime.Now()
	clear(b.out)
	b.out = b.out[:0]
	for began := now; ; now = monotime.Now() {
		b.mu.Lock()
		b.room.capacity, b.acks.most = max(b.room.capacity, n), max(b.acks.most, n)
		b.room.wants = n
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
			for n = min(n, b.queue.len()); n > 0 && b.queue.first().entry.Values != nil; n-- { // skipLost takes those without data, in their turn
				e := b.queue.pop()
				b.acks.taken = append(b.acks.taken, e.ID)
				b.out = append(b.out, e)
			}
			b.room.wants = 0
			wake := b.room.regained(&b.queue)
			b.mu.Unlock()
			if wake {
				b.cfg.Wanted()
			}
			return b.out, nil
		}
		wake := b.room.regained(&b.queue) // n may have made the capacity larger
		interrupted := b.interrupted
		b.interrupted = false
		b.mu.Unlock()
		if wake {
			b.cfg.Wanted()
		}
		if most >= 0 {
			left := most - time.Duration(monotime.Now()-began)
			interrupted = interrupted || left <= 0
			if wait < 0 || left < wait {
				wait = left
			}
		}
		if interrupted {
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

// wait returns how long the consumer has to wait for its n entries: 0 not at all, -1
// until a change.
func (b *Buffer) wait(n int, within time.Duration, now int64) time.Duration {
	held := b.queue.len()
	switch {
	case held == 0, b.acks.outstanding() >= b.acks.most:
		return -1
	case held >= n, b.room.full(&b.queue):
		return 0
	}
	left := time.Duration(b.queue.first().at-now) + within
	return max(left, 0)
}

// skipLost skips entries whose data was deleted while they were pending. They are reported and
// acked in their turn.
func (b *Buffer) skipLost() {
	for b.queue.len() > 0 && b.queue.first().entry.Values == nil {
		id := b.queue.pop().ID
		b.acks.lost(id)
		b.cfg.Lost(id)
	}
}

// Close drops the queue and ends Await.
func (b *Buffer) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queue.len() > 0 {
		b.acks.dropped = b.queue.firstID()
	}
	b.closed = true
	b.queue = queue{}
	b.Signal()
}

// Signal makes Await check again whether the lease holds and the function may run.
func (b *Buffer) Signal() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// Interrupt makes Await return.
func (b *Buffer) Interrupt() {
	b.mu.Lock()
	b.interrupted = true
	b.mu.Unlock()
	b.Signal()
}
