package runnel

import (
	"context"
	"errors"
	"iter"
	"math"
	"runtime"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/runnel-go/runnel/codec"
	"golang.org/x/sync/semaphore"
)

const (
	// smallRecord is the number of bytes that a record may take to be decoded without a
	// reservation. Where that is not enough, four times as much is tried, and so on up to
	// MaxRecord.
	smallRecord = 256 << 10
	largerBy    = 4
	// largeRecord is the number of bytes that a record may take to be decoded at the same
	// time as others that are not small.
	largeRecord = 4 << 20
	// roomShares is the number of shares for records that are not small, which together
	// take at most MaxRecord. A record of MaxRecord has sharesOfMax.
	roomShares  = sharesOfMax
	sharesOfMax = 1024
	// roomPatience limits how long a record waits for the processing of others: a
	// function that hangs must not stop other partitions.
	roomPatience = 10 * time.Second
	// decoders is the number of shares for decoding records that are not small.
	decoders = 16
)

// largeRecords bounds the memory of an app's records that are not small, while they are
// decoded, which takes up to three times their size, and while they are processed.
type largeRecords struct {
	once     sync.Once
	decoding *semaphore.Weighted
	room     *semaphore.Weighted

	mu   sync.Mutex
	last int64 // bytes of records since garbage was collected
}

func (l *largeRecords) init() {
	l.once.Do(func() {
		l.decoding, l.room = semaphore.NewWeighted(decoders), semaphore.NewWeighted(roomShares)
	})
}

// sharesOf returns the shares of a record of this many bytes.
func sharesOf(takes, most int64) int64 {
	return min(sharesOfMax, int64(math.Ceil(float64(takes)/float64(most)*sharesOfMax)))
}

// hold waits for room. It returns the shares, or 0 if there is no room in time.
func (l *largeRecords) hold(ctx context.Context, shares int64) int64 {
	l.init()
	ctx, cancel := context.WithTimeout(ctx, roomPatience)
	defer cancel()
	if l.room.Acquire(ctx, shares) != nil {
		return 0
	}
	return shares
}

// holdNow is hold without waiting.
func (l *largeRecords) holdNow(shares int64) bool {
	l.init()
	return l.room.TryAcquire(shares)
}

func (l *largeRecords) release(shares int64) {
	if shares > 0 {
		l.room.Release(shares)
	}
}

// decode calls f, which takes up to limit bytes, and bounds how many such calls run at
// once. It returns the error of ctx if that ends before.
func (l *largeRecords) decode(ctx context.Context, limit int64, f func() (int64, error)) (int64, error) {
	l.init()
	share := int64(decoders)
	if limit <= largeRecord { // no more are running than processors
		share = max(1, share/int64(runtime.GOMAXPROCS(0)))
	}
	if err := l.decoding.Acquire(ctx, share); err != nil {
		return 0, err
	}
	defer l.decoding.Release(share)
	if limit > largeRecord {
		l.collect(limit)
	}
	return f()
}

// collect collects the garbage of large records before the next one. Otherwise there
// would be as much garbage as there was memory in use when the last ones were alive.
// collect does nothing in programs with much memory in use: there a collection takes
// long, and matters less.
func (l *largeRecords) collect(limit int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last += limit; l.last < 2*limit && l.last < codec.DefaultLimit {
		return
	}
	l.last = limit
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if live[0].Value.Kind() == metrics.KindUint64 && live[0].Value.Uint64() < 4*codec.DefaultLimit {
		runtime.GC()
	}
}

// decodeWithin fills *record from the entry of e, if that takes no more than the limit. It returns an upper
// bound of what the record takes. Settings must have been read.
func (n *encoding[T]) decodeWithin(e *Event, record *T, limit int64) (takes int64, err error) {
	limit = min(limit, n.effective.MaxRecord)
	takes, err = n.decodeOnce(e, record, min(limit, smallRecord))
	for try := range larger(e, limit, err) {
		takes, err = n.app.large.decode(context.Background(), try, func() (int64, error) { return n.decodeOnce(e, record, try) })
		if !errors.Is(err, codec.ErrTooLarge) {
			break
		}
	}
	return takes, err
}

// larger are the limits to try where smallRecord was not enough.
func larger(e *Event, limit int64, err error) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		if !errors.Is(err, codec.ErrTooLarge) || limit <= smallRecord {
			return
		}
		payload := e.size()
		for try := int64(smallRecord); try < limit; {
			if try = min(largerBy*try, limit); (try >= payload || try == limit) && !yield(try) {
				return
			}
		}
	}
}

// decode decodes event i of a batch. A record that is not small begins a batch; the others are as
// many as there is room for. It returns errEnded if the ownership ends before it is the record's turn.
func (b *batcher[T]) decode(ctx context.Context, e *Event, i int) (err error) {
	record, large, most := &b.records[i], &b.stream.app.large, b.stream.effective.MaxRecord
	limit := min(smallRecord, most-b.takes)
	if i > 0 && b.takes > smallRecord {
		if more := sharesOf(b.takes+limit, most) - b.shares; more > 0 {
			if !large.holdNow(more) {
				return codec.ErrTooLarge
			}
			b.shares += more
		}
	}
	takes, err := b.stream.encoding.decodeOnce(e, record, limit)
	if i == 0 && errors.Is(err, codec.ErrTooLarge) {
		ctx, cancel := b.owned(ctx)
		defer cancel()
		for try := range larger(e, most, err) {
			b.shares = large.hold(ctx, sharesOf(try, most))
			takes, err = large.decode(ctx, try, func() (int64, error) { return b.stream.encoding.decodeOnce(e, record, try) })
			if err == nil {
				b.settleFor(sharesOf(takes, most))
				break
			}
			b.settleFor(0)
			if ctx.Err() != nil {
				return errEnded
			}
			if !errors.Is(err, codec.ErrTooLarge) {
				break
			}
		}
	}
	if err == nil {
		b.takes += takes
	}
	return err
}

// owned returns a context that ends when the ownership begins to end: what waits for its turn then would
// keep the partition from its next owner.
func (b *batcher[T]) owned(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-b.src.Ending:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// settleFor returns the shares that are not needed.
func (b *batcher[T]) settleFor(shares int64) {
	if shares < b.shares {
		b.stream.app.large.release(b.shares - shares)
		b.shares = shares
	}
}

// forget drops the references to the records of the processed batch, if they are not
// small.
func (b *batcher[T]) forget() {
	if b.takes > smallRecord {
		clear(b.records[:cap(b.records)]) // not a slice that a loop may keep: the loop owns those
		b.out.records = nil
	}
	b.settleFor(0)
	b.takes = 0
}

// size is the length of the fields of an entry.
func (e *Event) size() (n int64) {
	for name, value := range e.values {
		text, _ := value.(string)
		n += int64(len(name) + len(text))
	}
	return n
}
