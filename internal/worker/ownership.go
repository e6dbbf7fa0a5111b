package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/store"
)

// An Ownership is one ownership of a partition, for packages that do work beside the consumer's loop.
// It ends when the processor's function has returned, at the latest. Its methods may be called
// concurrently; none but Run and Isolate blocks.
type Ownership struct {
	p      *partition
	m      *member
	again  signal
	number atomic.Int64
}

type ownershipKey struct{}

// OwnershipOf returns the ownership that a processor's function was called for, nil outside of one.
func OwnershipOf(ctx context.Context) *Ownership {
	o, _ := ctx.Value(ownershipKey{}).(*Ownership)
	return o
}

// At returns the partition and the epoch. Epochs of a partition grow, also from worker to worker.
func (o *Ownership) At() (partition int, epoch int64) { return o.p.keys.Number, o.p.epoch }

// Log returns the logger of the ownership, which names stream, processor, partition and epoch.
func (o *Ownership) Log() *slog.Logger { return o.p.log }

// Fence returns what the ownership hash has as its tenure: an argument of scripts with store.Fence.
func (o *Ownership) Fence() string { return o.p.claim.LockValue() }

// Live reports whether the lease holds and the ownership does not end. Ask before each effect outside
// of Redis: another worker may own the partition otherwise.
func (o *Ownership) Live() bool { return !o.p.life.isEnding() && o.p.leaseValid() }

// LeaseEnd returns the time, of this process, at which the lease ends unless it is extended before.
func (o *Ownership) LeaseEnd() time.Time {
	return time.Now().Add(time.Duration(o.p.lease.end.Load() - monotime.Now()))
}

// Ending returns a channel that is closed when the ownership begins to end. What has begun may go on
// until the context of the function ends.
func (o *Ownership) Ending() <-chan struct{} { return o.p.life.ending }

// Expiry is how long the partition stays with a worker that stopped responding.
func (o *Ownership) Expiry() time.Duration { return o.p.expiry }

// Now returns the server's time as far as the worker knows it, never ahead of it; in a cluster that of
// one node.
func (o *Ownership) Now() time.Time { return o.m.latencies.serverTime() }

// Number returns 1, 2 and so on: a number that no other call of the ownership gets.
func (o *Ownership) Number() int64 { return o.number.Add(1) }

// Begin reports whether a call of a user's function may begin. The gate is one of Processor.Gates, or
// "" for none but the processor's. It is false while a rule holds back what the gate names, the
// partition, its processor, stream or app, and when the ownership ends. What began counts as running,
// in heartbeats and for those who wait until nothing runs, until end is called; end may be called
// again.
func (o *Ownership) Begin(gate string) (end func(), ok bool) {
	if !o.Live() {
		return nil, false
	}
	c := &call{gate: gate, since: monotime.Now()}
	if !o.p.calls.begin(c, &o.p.held) {
		return nil, false
	}
	return func() {
		if o.p.calls.end(c, &o.p.held) {
			o.p.changed()
		}
	}, true
}

// Open reports whether Begin would do.
func (o *Ownership) Open(gate string) bool { return o.Live() && !o.p.calls.heldBack(gate, &o.p.held) }

// Changed returns a channel that is closed when a gate has opened or closed since this call.
func (o *Ownership) Changed() <-chan struct{} { return o.p.calls.changed() }

// Run calls look again and again until the ownership or ctx ends: after the time that look returned, or
// earlier when Wake is called or a gate opens or closes. It logs errors of look under op and passes them to
// over. If that returns true, Run returns; otherwise it calls look again after a short pause. Run blocks.
// Call it once for an ownership.
func (o *Ownership) Run(ctx context.Context, op string, look func() (time.Duration, error), over func(err error) bool) {
	for retry := outage.New(o.Log(), op, nil); ; {
		changed := o.Changed()
		next, err := look()
		if err == nil {
			retry.Recovered()
		} else if over(err) {
			return
		} else {
			retry.Wait(ctx, err)
			continue
		}
		timer := time.NewTimer(next)
		select {
		case <-o.Ending():
			return
		case <-ctx.Done():
			return
		case <-changed:
		case <-o.again:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Wake has Run look again. It never blocks.
func (o *Ownership) Wake() { o.again.set() }

// Over reports whether an error, or the end of the ownership or of ctx, means that nothing more is to be
// done. It calls Lost if the error is store.ErrFenced.
func (o *Ownership) Over(ctx context.Context, err error) bool {
	if errors.Is(err, store.ErrFenced) {
		o.Lost(err)
		return true
	}
	return o.p.life.isEnding() || ctx.Err() != nil
}

// Isolate blocks until the caller is the only one of this worker, among those that call Isolate and
// events that a dead worker may have begun: then the end of the process names its cause. ok is false
// if ctx or the ownership ends before. end may be called again.
func (o *Ownership) Isolate(ctx context.Context) (end func(), ok bool) {
	c, all := &suspect{lease: o.p.expiry, again: newSignal()}, o.m.w.isolation
	for !all.claim(c, isolationExclusive) {
		select {
		case <-c.again:
			continue
		case <-ctx.Done():
		case <-o.p.life.ending:
		}
		all.forget(c)
		return nil, false
	}
	return sync.OnceFunc(func() { all.release(c) }), true
}

var errForgotten = errors.New("the lock is ours, the takeover is forgotten")

// Lost says that a script found another ownership in Redis. The worker looks at the lock, and ends
// the ownership if it is another's, or takes the partition over again if Redis has forgotten that.
// Call it before the processor's function returns.
func (o *Ownership) Lost(err error) {
	o.m.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(o.m.ctx), o.p.expiry)
		defer cancel()
		held := errors.Is(o.m.releases.probe(ctx, []*partition{o.p}, errForgotten), errForgotten)
		if held && !o.p.life.isEnding() {
			o.m.releases.repeat(o.p, fmt.Errorf("%w: %w", errForgotten, err))
		}
	})
}

// A suspect is a claimant for one call.
type suspect struct {
	lease time.Duration
	again signal
}

func (s *suspect) leaseLength() time.Duration { return s.lease }
func (s *suspect) retry()                     { s.again.set() }
