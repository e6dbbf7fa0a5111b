package worker

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/retryqueue"
)

// Counters count what an executor, or a worker beside its executors, has done since
// the worker began. Any goroutine may add to them and load them.
type Counters struct {
	Fetched   atomic.Int64 // given by Redis
	Processed atomic.Int64 // handled, or ignored after a failure
	Acked     atomic.Int64 // confirmed by Redis
	Commits   atomic.Int64 // by position, with or without changes
	Hops      atomic.Int64 // outputs that came to another slot
	Repeated  atomic.Int64 // delivered though an earlier owner may have begun them
	Ignored   atomic.Int64 // failed under Ignore
	Failed    atomic.Int64 // failed under a Retry, each attempt
	retryqueue.Counts
	Lost atomic.Int64 // removed from Redis before they were processed

	LostPartitions atomic.Int64 // lost to a lapsed lease or to another owner
	Regained       atomic.Int64 // taken over again by the same executor
	Quarantined    atomic.Int64 // found quarantined, or stopped by a failure
	Forgotten      atomic.Int64 // of which Redis had forgotten something
	Stuck          atomic.Int64 // whose function did not return in time

	// Requests and the membership.
	Rebalances atomic.Int64 // assignments that came
	Rejoins    atomic.Int64 // under a new executor ID
	Refreshes  atomic.Int64 // of leases that were answered
	Fenced     atomic.Int64 // requests that Redis refused because the consumer group was gone
	Errors     atomic.Int64 // of Redis, each try; those of commands of the control loops
	Halted     atomic.Int64 // errors that stopped the worker

	// Of a worker only.
	Trimmed      atomic.Int64 // entries
	Moved        atomic.Int64 // delayed events that became due
	TaskFailures atomic.Int64
}

// A tally counts the processed events of one partition and adds them now and then to the counter
// that all partitions of a processor share. Adding each event would make consumers contend.
type tally struct {
	n  atomic.Int64
	to *atomic.Int64
}

func (t *tally) add(n int64) { t.n.Add(n) }

// flush moves the count to the shared counter.
func (t *tally) flush() {
	if n := t.n.Swap(0); n > 0 {
		t.to.Add(n)
	}
}

// HandlerBounds and DelayBounds are the upper bounds of the classes of Latencies.
var (
	HandlerBounds = []time.Duration{
		50 * time.Microsecond, 100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
		time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
		50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
		time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute,
	}
	DelayBounds = []time.Duration{
		2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
		100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond,
		5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour,
	}
)

// A Distribution counts durations by class. One goroutine adds; any may read.
type Distribution struct {
	bounds []time.Duration
	counts []atomic.Int64 // one more: above the last bound
	sum    atomic.Int64   // ns
	last   int            // class of the last one, near which the next is likely; of the one that adds
}

func newDistribution(bounds []time.Duration) *Distribution {
	return &Distribution{bounds: bounds, counts: make([]atomic.Int64, len(bounds)+1)}
}

func (d *Distribution) add(took time.Duration) {
	i := d.last
	for i > 0 && took <= d.bounds[i-1] {
		i--
	}
	for i < len(d.bounds) && took > d.bounds[i] {
		i++
	}
	d.last = i
	d.counts[i].Add(1)
	d.sum.Add(int64(took))
}

// A Histogram is a snapshot of one or more Distributions.
type Histogram struct {
	Bounds []time.Duration // upper ones, ascending
	Counts []int64         // of the same classes, and one more above the last bound
	Sum    time.Duration
}

// NewHistogram returns an empty one.
func NewHistogram(bounds []time.Duration) Histogram {
	return Histogram{Bounds: bounds, Counts: make([]int64, len(bounds)+1)}
}

// Add counts a duration.
func (h *Histogram) Add(d time.Duration) {
	i, _ := slices.BinarySearch(h.Bounds, d)
	h.Counts[i]++
	h.Sum += d
}

// Clone returns a copy.
func (h Histogram) Clone() Histogram {
	h.Counts = slices.Clone(h.Counts)
	return h
}

func (h Histogram) Count() (n int64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

func (h *Histogram) merge(d *Distribution) {
	for i := range d.counts {
		h.Counts[i] += d.counts[i].Load()
	}
	h.Sum += time.Duration(d.sum.Load())
}

// Latencies are the durations of the iterations of a partition's function, and the ages of its
// events, by Redis' clock, when they were done.
type Latencies struct {
	Handler, Delay *Distribution
}

// A latencyBook has the latencies of an executor by partition. They outlive ownerships,
// so that sums never fall.
type latencyBook struct {
	on     bool
	behind atomic.Int64 // how far monotime is behind Redis' clock, in ns; 0: not known yet
	least  atomic.Int64 // the same, and certainly not less

	mu sync.Mutex
	of map[int]*Latencies
}

// partition returns the latencies of a partition, nil where none are measured.
func (b *latencyBook) partition(n int) *Latencies {
	if !b.on {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.of[n]
	if l == nil {
		l = &Latencies{newDistribution(HandlerBounds), newDistribution(DelayBounds)}
		b.of[n] = l
	}
	return l
}

// sums returns the latencies of all partitions together.
func (b *latencyBook) sums() (handler, delay Histogram) {
	handler, delay = NewHistogram(HandlerBounds), NewHistogram(DelayBounds)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.of {
		handler.merge(l.Handler)
		delay.merge(l.Delay)
	}
	return handler, delay
}

// sync stores Redis' clock: it was at server, in ms, between sent and now by monotime. It returns
// by how much the clock was set since the last call, 0 if that may be the request's time.
func (b *latencyBook) sync(server, sent, now int64) (step time.Duration) {
	if server <= 0 {
		return 0
	}
	b.least.Store(server*int64(time.Millisecond) - now)
	behind := server*int64(time.Millisecond) - (sent+now)/2
	before := b.behind.Swap(behind)
	if step = time.Duration(behind - before); before == 0 || step.Abs() < leastStep+time.Duration(now-sent) {
		return 0
	}
	return step
}

// serverTime returns Redis' time, or a little less.
func (b *latencyBook) serverTime() time.Time { return time.Unix(0, monotime.Now()+b.least.Load()) }

// leastStep is the least change of Redis' clock that is reported.
const leastStep = 2 * time.Second
