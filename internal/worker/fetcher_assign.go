package worker

import (
	"slices"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
)

const (
	// homeSize is how many partitions share a reader while little comes: one read waits for all of them.
	homeSize = 16
	// wideRate is how many entries a second have a fetcher spread its partitions over all readers: while one of them
	// waits for the server, others pass on what came. So does a second read in a row that brings all that it asks
	// for of a partition.
	wideRate  = 1000
	fullReads = 2
	// rateOver is the time over which entries are counted.
	rateOver = 100 * time.Millisecond
	// wideFor is how long partitions stay spread after the last reason for it, and how long they are together, at
	// least, after a read that failed: it may be over a connection that others can do without.
	wideFor = 10 * time.Second
)

// anotherReader is in place of the number of connections, where another reader has read a partition before.
const anotherReader = -1

// A width is whether the partitions of a fetcher are spread over all its readers.
type width struct {
	mu        sync.Mutex
	until     int64 // they are, by monotime, 0: they are not
	notBefore int64 // 0: at any time
	began     int64 // of the count, 0: not yet
	entries   int   // since then
}

func (w *width) wide() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.until != 0 && monotime.Now() < w.until
}

// brought notes that a read has brought entries. full is whether it was one of several that bring all they ask for.
func (w *width) brought(entries int, full bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := monotime.Now()
	if w.began == 0 {
		w.began = now
	}
	w.entries += entries
	over := time.Duration(now - w.began)
	if many := over >= rateOver && float64(w.entries) >= wideRate*over.Seconds(); (many || full) && (w.notBefore == 0 || now >= w.notBefore) {
		w.until = now + int64(wideFor)
	}
	if over >= rateOver {
		w.began, w.entries = now, 0
	}
}

// failed notes that a read has failed.
func (w *width) failed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until, w.notBefore = 0, monotime.Now()+int64(wideFor)
}

// place returns the reader of a partition, where one server has all of them.
func (f *fetcher) place(p *partition, wide bool) *reader {
	n := p.keys.Number
	if !wide {
		n /= homeSize
	}
	return f.readers[n%len(f.readers)]
}

// homes returns the readers that are needed while little comes. The others connect when they first read.
func (f *fetcher) homes() []*reader {
	n := (f.x.p.Partitions + homeSize - 1) / homeSize
	if f.x.w.client.Clustered() {
		n = 1 // it connects to each node
	}
	return f.readers[:min(n, len(f.readers))]
}

// rearrange hands partitions to the readers where they belong now. The reader has no read under way, and its last
// one is settled: what it has brought is in their buffers.
func (r *reader) rearrange() {
	f := r.f
	if len(f.readers) == 1 || f.x.w.client.Clustered() {
		return
	}
	f.assigning.Lock() // remove sees each of them at one reader
	defer f.assigning.Unlock()
	wide := f.width.wide()
	r.mu.Lock()
	var away []*partition
	r.partitions = slices.DeleteFunc(r.partitions, func(p *partition) bool {
		goes := f.place(p, wide) != r
		if goes {
			away = append(away, p)
			r.forget(p)
		}
		return goes
	})
	r.mu.Unlock()
	for _, p := range away {
		to := f.place(p, wide)
		p.connections = anotherReader
		p.reader.Store(to)
		to.add(p)
	}
}

// assign chooses the reader of a partition. In a cluster a read that names several slots cannot
// block, so each partition gets a reader of its own while there are enough. Then partitions of one
// node share readers, so that an unreachable node does not hold up the others. f.assigning is held.
func (f *fetcher) assign(p *partition) *reader {
	if !f.x.w.client.Clustered() {
		r := f.place(p, f.width.wide())
		p.reader.Store(r)
		return r
	}
	node := f.x.w.client.NodeOf(p.keys.Log)
	// An idle reader costs nothing; else readers of the same node are preferred.
	cost := func(r *reader) int {
		if r.load > 0 && r.node != node {
			return r.load + elsewhere
		}
		return r.load
	}
	best := slices.MinFunc(f.readers, func(a, b *reader) int { return cost(a) - cost(b) })
	if best.load == 0 {
		best.node = node
	}
	best.load++
	p.reader.Store(best)
	return best
}

// elsewhere is how many partitions of its own node a reader takes rather than one of another.
const elsewhere = 1 << 20

// unassign ends what assign began.
func (f *fetcher) unassign(p *partition) {
	f.assigning.Lock()
	defer f.assigning.Unlock()
	if r := p.reader.Swap(nil); r != nil {
		r.load--
	}
}
