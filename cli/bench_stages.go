package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/runnel-go/runnel"
)

// durations are measured by several goroutines.
type durations struct {
	mu  sync.Mutex
	all []time.Duration
}

func (d *durations) add(one ...time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, one...)
}

// percentiles sets the median and the 99th percentile, and returns the number of durations.
func (d *durations) percentiles(m *measure) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.all) == 0 {
		return 0
	}
	slices.Sort(d.all)
	at := func(percent int) *float64 {
		ms := inMS(d.all[(len(d.all)-1)*percent/100])
		return &ms
	}
	m.P50, m.P99 = at(50), at(99)
	return int64(len(d.all))
}

func inMS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// A tally counts events, and keeps the times of the first and the last.
type tally struct {
	n           atomic.Int64
	first, last atomic.Int64 // ns since the bench began
}

func (t *tally) count(at time.Duration) {
	if t.n.Add(1) == 1 {
		t.first.Store(int64(at))
	}
	t.last.Store(int64(at))
}

// ping measures the round trip to the server.
func (b *bench) ping(ctx context.Context, lasts time.Duration, m *measure) error {
	var d durations
	began := time.Now()
	for time.Since(began) < lasts {
		sent := time.Now()
		if err := b.client.Redis().Ping(ctx).Err(); err != nil {
			return err
		}
		d.add(time.Since(sent))
	}
	m.Events, m.Took = d.percentiles(m), inMS(time.Since(began))
	return nil
}

// sending is the stage in which each sender sends so many records at a time.
func (b *bench) sending(batch int) benchStage {
	return func(ctx context.Context, lasts time.Duration, m *measure) error {
		return b.sendAll(ctx, lasts, batch, m)
	}
}

// sendAll sends as fast as possible, until the time is over or the stage has sent all it may.
func (b *bench) sendAll(parent context.Context, lasts time.Duration, batch int, m *measure) error {
	var d durations
	began, before := time.Now(), b.loaded.Load()
	senders, ctx := errgroup.WithContext(parent)
	for n := range b.Senders {
		senders.Go(func() error {
			records := b.records(batch, n)
			var own []time.Duration
			for time.Since(began) < lasts && ctx.Err() == nil && b.room.Add(-int64(batch)) >= 0 {
				sent := time.Now()
				// A cancelled call may still be executed, and append after the stream was removed.
				if err := b.load.Send(context.WithoutCancel(ctx), records...); err != nil {
					return err
				}
				own = append(own, time.Since(sent))
				b.loaded.Add(int64(batch))
				for i := range records { // for other partitions
					records[i].Key = strconv.Itoa(n + len(own) + i)
				}
			}
			d.add(own...)
			return nil
		})
	}
	if err := errors.Join(senders.Wait(), parent.Err()); err != nil {
		return err
	}
	d.percentiles(m)
	m.Events, m.Took = b.loaded.Load()-before, inMS(time.Since(began))
	return nil
}

func (b *bench) records(n, from int) []benchRecord {
	data := make([]byte, b.Size)
	records := make([]benchRecord, n)
	for i := range records {
		records[i] = benchRecord{Key: strconv.Itoa(from + i), Data: data}
	}
	return records
}

// working runs a worker of one processor while fn runs.
func (b *bench) working(ctx context.Context, processor string, fn func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var ran error
	var worker sync.WaitGroup
	worker.Go(func() {
		ran = b.app.Run(ctx, processor)
		cancel(errors.Join(errors.New("the worker has ended"), ran))
	})
	err := fn(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	cancel(nil)
	worker.Wait()
	return errors.Join(err, ran)
}

// latency sends at a modest rate, and measures the time from send to handler.
func (b *bench) latency(ctx context.Context, lasts time.Duration, m *measure) error {
	return b.working(ctx, "paced/handle", func(ctx context.Context) error {
		if err := b.await(ctx, benchPatience, func() bool { return b.app.Ready() == nil }); err != nil {
			return fmt.Errorf("the worker is not ready: %w", err)
		}
		records := b.records(1, 0)
		pace := time.Tick(benchPace)
		began, sent := time.Now(), int64(0)
		for time.Since(began) < lasts && b.room.Add(-1) >= 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-pace:
			}
			records[0].Key, records[0].At = strconv.FormatInt(sent, 10), time.Since(b.begun)
			if err := b.paced.Send(context.WithoutCancel(ctx), records...); err != nil {
				return err
			}
			sent++
		}
		m.Took = inMS(time.Since(began))
		err := b.await(ctx, benchPatience, func() bool { m.Events = b.ways.percentiles(m); return m.Events >= sent })
		if err != nil {
			return fmt.Errorf("%d of %d events were handled: %w", m.Events, sent, err)
		}
		return nil
	})
}

func (b *bench) handle(_ context.Context, events *runnel.Events[benchRecord]) error {
	for r := range events.Records() {
		b.ways.add(time.Since(b.begun) - r.At)
	}
	return nil
}

// drainAll handles the events of load as fast as possible, until the time is over.
func (b *bench) drainAll(ctx context.Context, lasts time.Duration, m *measure) error {
	err := b.working(ctx, "load/drain", func(ctx context.Context) error {
		if err := b.await(ctx, benchPatience, func() bool { return b.drained.n.Load() > 0 }); err != nil {
			return fmt.Errorf("nothing is handled: %w", err)
		}
		err := b.await(ctx, lasts, func() bool { return b.drained.n.Load() >= b.loaded.Load() })
		if errors.Is(err, errOver) {
			return nil
		}
		return err
	})
	m.Events = b.drained.n.Load()
	m.Took = inMS(time.Duration(b.drained.last.Load() - b.drained.first.Load()))
	return err
}

func (b *bench) drain(_ context.Context, events *runnel.Events[benchRecord]) error {
	for range events.Raw() {
		b.drained.count(time.Since(b.begun))
	}
	return nil
}

var errOver = errors.New("the time is over")

// await waits until a condition holds, ctx ends, or the time is over.
func (b *bench) await(ctx context.Context, lasts time.Duration, cond func() bool) error {
	over, tick := time.After(lasts), time.Tick(2*time.Millisecond)
	for !cond() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over:
			return errOver
		case <-tick:
		}
	}
	return nil
}
