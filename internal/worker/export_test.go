package worker

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/prefetch"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/retryqueue"
)

// A Fed is the Source of an ownership without Redis: it repeats a list of entries, and its acks are
// confirmed at once.
type Fed struct {
	*partitionSource
	entries []redisconn.Entry
	left    int
	held    int // in the buffer
}

// noHost is the host of a partition without a member, and sends no acks.
type noHost struct{}

func (noHost) mark(*partition)          {}
func (noHost) hurry()                   {}
func (noHost) leaseEnded(*partition)    {}
func (noHost) endCause() error          { return errors.New("the source has ended") }
func (noHost) retake(*partition)        {}
func (noHost) repeat(*partition, error) {}

// NewFed returns a source that ends after n events. p is its processor.
func NewFed(p *Processor, entries []redisconn.Entry, n int) *Fed {
	t := &partition{epoch: 1, log: slog.New(slog.DiscardHandler), host: noHost{}, acks: noHost{}, count: new(Counters)}
	t.init()
	t.lease.end.Store(math.MaxInt64)
	t.buffer = prefetch.New(prefetch.Config{Capacity: p.Prefetch, Adaptive: p.Adapt, MaxBytes: p.PrefetchBytes, Committed: "0-0", Live: t.lease.holdsAt, MayRun: t.enter})
	t.changed, t.opened = func() {}, t.buffer.Signal
	t.source.turn.of = newCrashIsolation()
	t.source.retries = retryqueue.New(retryqueue.Config{Retry: p.Retry, Log: t.log, Counts: &t.count.Counts, Limit: math.MaxInt64})
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	return &Fed{partitionSource: &t.source, entries: entries, left: n}
}

func (f *Fed) Input() Input { return f.p.input(f) }

// Timed measures iterations, as when metrics are scraped.
func (f *Fed) Timed() *Fed {
	book := &latencyBook{on: true, of: map[int]*Latencies{}}
	book.sync(time.Now().UnixMilli(), monotime.Now(), monotime.Now())
	f.timing = timing{to: book.partition(0), behind: &book.behind, running: &f.p.running}
	return f
}

// Take is Source.Take. It first acts as fetcher and acker: it pushes at most as many entries as one
// read brings, and confirms as many acks.
func (f *Fed) Take(n int, within time.Duration) ([]redisconn.Entry, error) {
	f.feed(n)
	out, err := f.partitionSource.Take(n, within)
	f.left, f.held = f.left-len(out), f.held-len(out)
	return out, err
}

// Next is Source.Next, after the same steps.
func (f *Fed) Next(done string, checked bool) (redisconn.Entry, bool) {
	if f.held == 0 { // the IDs come again: no ack may be outstanding
		f.Ack([]string{done})
		f.feed(1)
		entries, _ := f.partitionSource.nextTurn(1, 0)
		f.left, f.held = f.left-len(entries), f.held-len(entries)
		return append(entries, redisconn.Entry{})[0], len(entries) > 0
	}
	e, ok := f.partitionSource.Next(done, checked)
	f.left, f.held = f.left-1, f.held-1
	return e, ok
}

func (f *Fed) feed(n int) {
	if f.held < n && f.held < f.left {
		for more := true; more; {
			f.p.buffer.TakeAcks(acksPerCommand, "")
			_, more = f.p.buffer.AcksConfirmed()
		}
		more := f.entries[:min(maxTarget, len(f.entries), f.left-f.held)]
		f.p.buffer.Push(more)
		f.held += len(more)
	}
	if f.left == 0 {
		f.p.beginEnd()
	}
}
