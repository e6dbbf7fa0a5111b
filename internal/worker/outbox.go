package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/store"
)

// handOver is how long the last owner of a partition, in a worker that stops, tries to bring its outputs away.
const handOver = time.Second

// An outbox brings what the commits of a partition have emitted to other slots to where that is for, beside its consumer.
// Outputs are committed with their number in the ownership, and stay in Redis until they have come: what an owner
// leaves, the next one sends.
type outbox struct {
	p       *partition
	m       *member
	courier *store.Courier
	boxed   int64 // outputs for other slots in commits of this ownership; of the acker
	weight  int64 // of those of the commit under way; of the acker

	asked  atomic.Int64 // the weight of what was put there
	read   atomic.Int64 // what of that was read, if all was
	seen   atomic.Int64 // what of that has come, if all has
	behind atomic.Bool  // so much was read and waits that nothing more may be begun
	wake   signal

	mu    sync.Mutex
	known map[store.StreamPartition]bool // that can tell our outputs from those of earlier owners
}

// newOutbox returns nil for a processor whose commits reach everything.
func newOutbox(m *member, p *partition) *outbox {
	if !m.p.Atomic || !m.w.client.UsesOutboxes() {
		return nil
	}
	o := &outbox{p: p, m: m, courier: m.w.client.NewCourier(p.keys), wake: newSignal(), known: map[store.StreamPartition]bool{}}
	o.asked.Store(1)
	o.courier.Forgot = func(to store.StreamPartition, had, has string) {
		p.log.Error("outputs lost", "err", fmt.Errorf("partition %d of stream %s had those up to %s, and has those up to %s", to.Partition, to.Stream, had, has), "help", help.OutputsLost)
	}
	return o
}

// run brings outputs away until the ownership has ended.
func (o *outbox) run() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(o.m.ctx))
	defer cancel()
	o.m.wg.Go(func() {
		defer cancel()
		select {
		case <-o.p.life.gone:
		case <-o.p.life.ended:
		}
	})
	held := map[store.StreamPartition]*outage.Outage{}
	o.courier.Failed = func(to store.StreamPartition, err error) {
		if held[to] == nil {
			held[to] = outage.New(o.p.log, "outputs", &o.m.count.Errors)
		}
		if err == nil {
			held[to].Recovered()
		} else {
			held[to].Failed(ctx, err)
		}
	}
	retry := outage.New(o.p.log, "outbox", &o.m.count.Errors)
	for ctx.Err() == nil {
		again, err := o.round(ctx)
		if err != nil {
			retry.Wait(ctx, err)
			continue
		}
		retry.Recovered()
		o.sleep(ctx, again)
	}
}

func (o *outbox) round(ctx context.Context) (again time.Duration, err error) {
	asked, full := o.asked.Load(), o.full()
	if asked != o.read.Load() {
		o.courier.Look()
	}
	came, again, err := o.courier.Round(ctx)
	o.m.count.Hops.Add(came)
	if o.courier.ReadAll() {
		o.read.Store(asked)
	}
	if err == nil && again < 0 {
		o.seen.Store(asked)
	}
	o.behind.Store(o.courier.Behind())
	if full || again < 0 {
		o.p.buffer.Signal() // for who waits until it is not full, and for handOver
	}
	return again, err
}

// sleep waits until there may be more to do.
func (o *outbox) sleep(ctx context.Context, most time.Duration) {
	var elapsed <-chan time.Time
	if most >= 0 {
		timer := time.NewTimer(most)
		defer timer.Stop()
		elapsed = timer.C
	}
	select {
	case <-ctx.Done():
	case <-elapsed:
	case <-o.wake:
	}
}

// number numbers the outputs of a commit that are for other slots.
func (o *outbox) number(one *store.Commit) {
	if o == nil || one.Changes == nil {
		return
	}
	one.Boxes, o.weight = o.m.w.client.Boxes(o.p.keys, one.Changes.Outputs)
	one.Epoch, one.Boxed = o.p.epoch, o.boxed
	o.boxed += one.Boxes
}

// stored tells of a commit that was.
func (o *outbox) stored(one store.Commit) {
	if o != nil && one.Boxes > 0 {
		o.asked.Add(o.weight)
		o.wake.set()
	}
}

// full reports whether so much waits, in memory or in Redis, that no other iteration may begin.
func (o *outbox) full() bool {
	return o != nil && (o.behind.Load() || o.asked.Load()-o.read.Load() >= store.MostWaiting)
}

// handOver waits a moment for what is on its way, if the worker stops: there may be no next owner for long.
func (o *outbox) handOver() {
	if o == nil || !o.m.w.stopping() {
		return
	}
	late := time.After(handOver)
	for o.seen.Load() != o.asked.Load() {
		select {
		case <-late:
			return
		case <-o.p.life.gone:
			return
		case <-o.p.buffer.Ready():
		}
	}
}

// reach makes sure that a partition can tell what is emitted to it from what earlier owners have: their epochs are lower, unless
// a failover has forgotten one of them, and clocks go back. It blocks until the partition has answered, once in an
// ownership. One that is to end does not wait for a partition that fails. With an error the ownership is over, or ctx is.
func (o *outbox) reach(ctx context.Context, to store.StreamPartition) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known[to] {
		return nil
	}
	var epoch int64
	var failed error
	err := o.p.source.parked.persistAs("outputs", func(alive context.Context) error {
		epoch, failed = unlessOver(alive, func() (int64, error) { return o.m.w.client.LastHop(alive, o.p.keys, to) })
		if failed != nil && o.p.life.isEnding() {
			o.p.cancel(o.m.releases.endCause()) // the next owner asks
		}
		if ctx.Err() != nil {
			return nil
		}
		return failed
	})
	if err != nil || failed != nil {
		return errors.Join(context.Cause(o.p.ctx), context.Cause(ctx), failed, err)
	}
	if epoch >= o.p.epoch {
		o.m.history.saw(o.p.keys.Number, epoch)
		err := fmt.Errorf("partition %d of stream %s has outputs of epoch %d", to.Partition, to.Stream, epoch)
		o.m.releases.behind(o.p, err)
		return errors.Join(ErrLost, err)
	}
	o.known[to] = true
	return nil
}
