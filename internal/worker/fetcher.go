package worker

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/redisconn"
)

const (
	// block is how long a read waits on the server. An idle partition costs a
	// share of one request in this time.
	block = 2 * time.Second
	// shortBlock is the same if the server permits ending neither a read nor a connection:
	// a release waits for the end of the read.
	shortBlock = 200 * time.Millisecond
	// interruptPatience is how long an interrupted reader may take first: a busy one returns by
	// itself.
	interruptPatience = time.Millisecond
)

// A fetcher fills the buffers of a member's partitions, which it spreads over its readers.
type fetcher struct {
	x         *member
	readers   []*reader
	assigning sync.Mutex // guards load and node of readers, and which of them has a partition
	width     width
	sizes     sizes
	target    atomic.Int64 // entries asked for per partition: grows from 1, so that large entries are met one by one
}

func newFetcher(m *member) *fetcher {
	f := &fetcher{x: m, sizes: sizes{prefetch: m.p.PrefetchBytes}}
	f.target.Store(1)
	for range m.p.ReadConns {
		f.readers = append(f.readers, &reader{
			f: f, conn: m.w.client.NewReader(), byLog: map[string]*partition{}, more: map[*partition]bool{},
			settling: outage.New(m.log, "end of a broken connection", &m.count.Errors),
			wake:     newSignal(), interrupts: newSignal(),
		})
	}
	return f
}

func (f *fetcher) run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, r := range f.readers {
		wg.Go(func() { r.run(ctx) })
		wg.Go(func() { r.interrupt(ctx) })
	}
	wg.Wait()
	f.close()
}

func (f *fetcher) add(p *partition) {
	f.assigning.Lock()
	defer f.assigning.Unlock()
	f.assign(p).add(p)
}

// remove ends reading a partition. It waits until no read that names the partition can
// still be executed, and returns true. It returns false at once only for a lost ownership
// of an executor ID that ends. Without the wait:
//
//  1. this executor owns the partition again, under a new ownership, whose group
//     has the same name;
//  2. the old read is executed, and takes entry 2 from the new group;
//  3. a read of the new ownership brings entry 3, or the old one's reply comes
//     before entry 1 does.
func (f *fetcher) remove(p *partition) bool {
	f.assigning.Lock()
	r := p.reader.Load()
	if r == nil {
		f.assigning.Unlock()
		return true // no read has named it
	}
	done := r.remove(p)
	f.assigning.Unlock()
	removed := done == nil || r.outlast(p, done)
	f.unassign(p)
	return removed
}

// wakeReader wakes the reader of a partition that has room again.
func (f *fetcher) wakeReader(p *partition) {
	if r := p.reader.Load(); r != nil {
		r.wakeUp()
	}
}

// learn adapts to the size of entries and to the load.
func (f *fetcher) learn(largest int64, full bool) {
	f.sizes.seen(largest, monotime.Now())
	if n := f.target.Load(); full && n < maxTarget {
		f.target.Store(min(4*n, maxTarget))
	}
}

// fewEntries are processed sooner than the next read returns.
const fewEntries = 16

// maxTarget is the most entries that are read per partition and request.
const maxTarget = 512

// A reader is one connection that reads many partitions in one request.
type reader struct {
	f          *fetcher
	conn       *redisconn.Reader
	wake       signal // there may be something to read
	interrupts signal // the read under way should end

	load int    // number of partitions; in a cluster only
	node string // that most of them were on

	interrupted atomic.Bool // the read under way was
	sight       sight
	settling    *outage.Outage // of reads of unknown outcome

	from    int   // index of the partition whose turn it is
	partial bool  // the read under way leaves some out
	quiet   int   // so many were asked in a row, and had nothing
	again   int   // so many reads in a row of those in more
	others  int64 // when the last other one began, by monotime
	full    int   // so many reads in a row brought all that they asked for of a partition

	mu         sync.Mutex
	more       map[*partition]bool // returned all that they were asked for
	partitions []*partition
	byLog      map[string]*partition
	done       chan struct{} // closed when the read under way cannot be executed any more; nil: none
	reading    map[*partition]bool
}

func (r *reader) add(p *partition) {
	r.mu.Lock()
	r.partitions = append(r.partitions, p)
	r.byLog[p.keys.Log] = p
	r.mu.Unlock()
	r.wakeUp()
}

// remove takes a partition out of later reads. If a read under way names it, remove returns what is closed when that
// cannot be executed any more.
func (r *reader) remove(p *partition) (done <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.partitions = slices.DeleteFunc(r.partitions, func(o *partition) bool { return o == p })
	r.forget(p)
	if r.done == nil || !r.reading[p] {
		return nil
	}
	return r.done
}

// forget removes what is known of a partition; mu is held.
func (r *reader) forget(p *partition) {
	delete(r.more, p)
	if r.byLog[p.keys.Log] == p {
		delete(r.byLog, p.keys.Log)
	}
}

// outlast waits until the read that names a partition cannot be executed any more; see fetcher.remove.
func (r *reader) outlast(p *partition, done <-chan struct{}) bool {
	r.wakeUp()
	select {
	case <-done:
		return true
	case <-r.f.x.ctx.Done():
	}
	// The executor ID ends: its groups have no reader any more, so the old read does no harm.
	select {
	case <-done:
		return true
	case <-p.life.gone:
		return false
	}
}

func (r *reader) wakeUp() {
	r.wake.set()
	r.interrupts.set()
}

// interrupt ends reads that wait on the server after wakeUp. One try is not enough: it misses a
// read that has been sent but does not wait yet.
func (r *reader) interrupt(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.interrupts:
		}
		r.mu.Lock()
		done := r.done
		r.mu.Unlock()
		if done == nil {
			continue
		}
		interruptUntil(done, func() bool {
			r.interrupted.Store(true)
			within(ctx, r.conn.Interrupt)
			return ctx.Err() == nil
		})
	}
}

// interruptUntil calls interrupt, with growing pauses, until done is closed or interrupt returns
// false. Its errors need no report: the read ends by itself within block.
func interruptUntil(done <-chan struct{}, interrupt func() bool) {
	for pause := interruptPatience; !ended(done, pause) && interrupt(); {
		pause = min(4*pause, 100*time.Millisecond)
	}
}

func ended(done <-chan struct{}, within time.Duration) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// run reads until ctx ends, when no partition is left.
func (r *reader) run(ctx context.Context) {
	retry := outage.New(r.f.x.log, "reads", &r.f.x.count.Errors)
	for ctx.Err() == nil {
		r.rearrange()
		set, logs, count, behind := r.next()
		var err error
		switch {
		case behind != nil:
			err = r.readHistory(ctx, behind, count)
		case len(set) > 0:
			err = r.read(ctx, set, logs, count)
		default:
			r.answered(false)
			select {
			case <-ctx.Done():
			case <-r.wake:
			}
			continue
		}
		if err != nil {
			r.f.width.failed()
			r.rearrange() // and not behind the wait
			r.unanswered(ctx, err)
			retry.Wait(ctx, err)
		} else {
			r.answered(true)
			retry.Recovered()
		}
	}
}

// begin stores the partitions of the coming read; mu is held.
func (r *reader) begin(set []*partition) {
	r.done = make(chan struct{})
	r.interrupted.Store(false)
	if r.reading == nil {
		r.reading = map[*partition]bool{}
	}
	for _, p := range set {
		r.reading[p] = true
	}
}

// finish notes that the read cannot be executed any more.
func (r *reader) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.done)
	r.done = nil
}

func (r *reader) read(ctx context.Context, set []*partition, logs []string, count int) error {
	wait := block
	if c := r.f.x.w.client; r.partial {
		wait = 0
	} else if !c.CanUnblock() && !c.CanKill() {
		wait = shortBlock
	}
	chunks, err := r.f.x.course.read(ctx, r, set, logs, count, wait)
	brought := r.take(set, chunks, count)
	if r.quiet += len(set); brought > 0 {
		r.quiet = 0
	}
	if err != nil {
		return r.failed(ctx, set, err)
	}
	r.finish()
	if brought <= fewEntries && !r.partial {
		runtime.Gosched() // to the functions, before the next request is written; where more is there, the server would wait
	}
	return nil
}

// readsOver notes over which of its connections a reader reads a partition. Behind another one may be a server that has forgotten that parked
// events are done.
func (r *reader) readsOver(p *partition, made int64) {
	if before := p.connections; before != 0 && before != made && r.f.x.p.Retry != nil {
		p.source.stale.Or(serversChange)
		p.buffer.Interrupt()
	}
	p.connections = made
}

// take fills the buffers with the reply to a read of a set, and returns its number of entries.
func (r *reader) take(set []*partition, chunks []redisconn.Chunk, count int) (brought int) {
	full := false
	r.mu.Lock()
	for _, p := range set {
		delete(r.more, p)
	}
	r.mu.Unlock()
	for _, c := range chunks {
		brought += len(c.Entries)
		r.mu.Lock()
		p := r.byLog[c.Key]
		if p != nil && len(c.Entries) >= count {
			r.more[p] = true
		}
		r.mu.Unlock()
		if p == nil {
			continue // released meanwhile: the entries are pending, for the next owner
		}
		full = full || len(c.Entries) >= count
		r.f.x.count.Fetched.Add(int64(len(c.Entries)))
		r.f.learn(p.receive(c.Entries), false)
	}
	r.full++
	if full {
		r.f.learn(0, true)
	} else {
		r.full = 0
	}
	r.f.width.brought(brought, r.full >= fullReads)
	return brought
}

// failed handles the error of a read. It returns an error if the next read should wait.
func (r *reader) failed(ctx context.Context, set []*partition, err error) error {
	switch {
	case errors.Is(err, redisconn.ErrUnknownOutcome):
		r.f.x.course.unsettled(ctx, r, set)
		r.finish()
		if r.interrupted.Load() {
			return nil // our own interruption, if the server cannot unblock a read
		}
		r.f.target.Store(1) // the reply may have been too large to arrive in time
		return err
	case errors.Is(err, redisconn.ErrNoGroup), errors.Is(err, redisconn.ErrWrongType):
		r.f.x.count.Fenced.Add(1)
		r.finish()
		return r.f.x.releases.probe(ctx, set, err)
	}
	r.finish()
	return err
}
