package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

const (
	// stuckPatience is how long after Grace a function may still take to return.
	stuckPatience = time.Second
	// waitingAfter is how long a function may take at shutdown before the log reports it.
	waitingAfter = 300 * time.Millisecond
)

// A releaser ends the ownerships of a member. It releases their locks, finds lost ones, and
// takes over again those that the member may keep. It is the host of the member's partitions.
// Its methods may be called concurrently.
type releaser struct{ m *member }

// end ends an ownership, once; further calls wait until it has. The order matters:
//
//  1. nothing more is delivered;
//  2. no read that names the partition can be executed any more: if this executor soon owns
//     the partition again, the old read would take events of the new ownership, whose group
//     has the same name;
//  3. the function returns: its last event is done or not done;
//  4. its acks are confirmed, since after the release they would be void;
//  5. the lock is released under this ownership's value, so that a late release cannot touch
//     a later ownership.
func (r *releaser) end(p *partition) {
	p.life.endIt.Do(func() {
		p.beginEnd()
		p.log.Debug("partition is being released", "member", r.m.id)
		r.m.w.forwarder.remove(p)
		quiet := r.m.fetch.remove(p)
		returned := r.awaitConsumer(p)
		switch {
		case !returned:
			// The function may still write somewhere: the lock keeps others out until it expires.
			r.m.ownerships.addStuck(p)
		case quiet && p.flush():
			p.outbox.handOver()
			r.unlock(p)
		case quiet && p.life.behind.Load():
			r.unlock(p)
		case quiet && p.staging != nil && !p.life.isLost() && p.staging.close():
			r.unlock(p) // what waits for room elsewhere is done again by the next owner
		default:
			if p.life.groupGone.Load() {
				r.saveCommitted(p)
			}
			r.m.undo(p.keys, p.claim)
		}
		r.m.ownerships.remove(p)
		r.m.w.rules.dismiss(p)
		close(p.life.ended)
		if returned {
			r.m.logBatch.note(slog.LevelInfo, released, p.keys.Number, nil)
		} else {
			r.m.logBatch.note(slog.LevelError, abandoned, p.keys.Number, nil)
		}
	})
}

// awaitConsumer waits until the consumer has returned. After Grace it ends the consumer's
// context, then reports a stuck function while the member lives. When the member ends, it
// gives up after another stuckPatience.
func (r *releaser) awaitConsumer(p *partition) (returned bool) {
	grace := time.NewTimer(r.m.p.Grace)
	defer grace.Stop()
	defer time.AfterFunc(waitingAfter, func() { r.logWaiting(p) }).Stop()
	select {
	case <-p.life.finished:
		return true
	case <-grace.C:
	}
	p.cancel(r.endCause())
	late := time.NewTimer(stuckPatience)
	defer late.Stop()
	ended := r.m.ctx.Done()
	for reported := false; ; {
		select {
		case <-p.life.finished:
			return true
		case <-ended:
			ended = nil
			late.Reset(stuckPatience)
		case <-late.C:
			if ended == nil {
				return false
			}
			if !reported {
				reported = true
				r.m.count.Stuck.Add(1)
			}
			p.log.Error("function is stuck", "op", "release", "after", time.Duration(monotime.Now()-p.running.Load()).Round(time.Second), "help", help.FunctionStuck)
			late.Reset(time.Minute)
		}
	}
}

// logWaiting logs at shutdown that the worker waits for the partition's function.
func (r *releaser) logWaiting(p *partition) {
	if r.m.w.stopping() {
		r.m.logBatch.add(entry{level: slog.LevelInfo, what: waiting, partition: p.keys.Number, since: p.running.Load(), grace: r.m.p.Grace})
	}
}

func (r *releaser) endCause() error {
	if r.m.w.stopping() {
		return ErrShutdown
	}
	return ErrReleased
}

// saveCommitted stores the committed position, which a destroyed group no longer has. If that
// fails, the events since the last refresh are repeated.
func (r *releaser) saveCommitted(p *partition) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.m.ctx), time.Second)
	defer cancel()
	_, err := r.m.w.client.Refresh(ctx, r.m.heartbeat.request(), []store.LeaseRequest{p.leaseRequest()})
	if err != nil {
		p.log.Warn("position not stored", "err", err)
	}
}

// unlock releases the lock while the lease holds. Later the lock expires by itself.
func (r *releaser) unlock(p *partition) {
	p.life.freeing.Store(true)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.m.ctx), max(0, time.Duration(p.lease.end.Load()-monotime.Now())))
	defer cancel()
	retry := outage.New(p.log, "release of the lock", &p.count.Errors)
	request := p.leaseRequest()
	if r.m.p.ByPosition {
		request.Begun = slices.MaxFunc([]string{p.buffer.Owed().Begun, p.source.given}, entryid.Compare)
	}
	if p.life.behind.Load() {
		request.Read = -1 // the server has a position of its own
	}
	for {
		held, err := r.m.w.client.Release(ctx, request)
		if err == nil && !held { // for example after Redis has forgotten the membership
			r.takeOut(p)
		}
		if err == nil || ctx.Err() != nil || !redisconn.Unavailable(err) {
			if err != nil {
				r.m.logBatch.note(slog.LevelWarn, notReleased, p.keys.Number, err)
			}
			return
		}
		retry.Wait(ctx, err)
	}
}

func (r *releaser) leaseEnded(p *partition) { r.lose(p, errLeaseEnded) }

// lose ends an ownership whose partition may have another owner, and the member with it. An
// ownership that has ended cannot be lost.
func (r *releaser) lose(p *partition, err error) {
	if p.life.hasEnded() || !p.lose() {
		return
	}
	r.m.count.LostPartitions.Add(1)
	r.takeOut(p)
	r.m.logBatch.note(slog.LevelWarn, lost, p.keys.Number, err)
	r.m.surprise(fmt.Errorf("partition %d: %w", p.keys.Number, err))
}

// takeOut stores the state of a partition that was lost, or that Redis knows differently, to ask
// Redis about it later.
func (r *releaser) takeOut(p *partition) {
	given, _ := p.buffer.Delivered()
	if r.m.p.ByPosition { // what was read left no trace
		given, _ = p.buffer.Checkpoint()
	}
	r.m.history.parts(store.Known{Place: p.keys, Group: r.m.group, Epoch: p.epoch, Given: given})
}

// suspect checks an ownership whose group refused an ack. If the ownership holds, its acks are
// sent again; by position, the partition is taken over again.
func (r *releaser) suspect(p *partition) {
	r.m.wg.Go(func() {
		// Not the handler's context: the drain needs the answer too.
		ctx := context.WithoutCancel(r.m.ctx)
		retry := outage.New(p.log, "acks", &p.count.Errors)
		for !p.life.isLost() && !p.life.hasEnded() {
			err := r.probe(ctx, []*partition{p}, store.ErrFenced)
			if err == nil {
				return
			}
			retry.Wait(ctx, err)
			switch {
			case !errors.Is(err, store.ErrFenced):
			case r.m.p.ByPosition: // it has no owner, as Redis has forgotten us
				r.behind(p, err)
				return
			default:
				r.m.acks.mark(p)
				return
			}
		}
	})
}

// probe finds the ownerships of a set that are over, after a reply that named none of them, and
// ends just those. If all hold, probe returns the reason.
func (r *releaser) probe(ctx context.Context, set []*partition, reason error) error {
	renewals := make([]store.LeaseRequest, len(set))
	for n, p := range set {
		renewals[n] = p.leaseRequest()
	}
	states, err := r.m.w.client.Probe(ctx, renewals)
	if err != nil {
		return err
	}
	found := false
	for n, p := range set {
		found = r.judge(p, states[n]) || found
	}
	if found {
		return nil
	}
	return reason
}

// judge acts on the server's state of an ownership and reports whether the ownership is over.
func (r *releaser) judge(p *partition, s store.State) bool {
	if p.life.hasEnded() {
		return true // the state is that of our own release
	}
	switch s {
	case store.Ours:
		return false
	case store.Lost:
		if p.life.freeing.Load() {
			return true
		}
		r.lose(p, errors.New("the lock is gone or held by another executor"))
	default:
		r.regain(p, s)
	}
	return true
}

// regain ends an ownership whose group was destroyed while the lock is still ours,
// and takes the partition over again under a new one. Nothing else is affected.
func (r *releaser) regain(p *partition, s store.State) {
	p.life.groupGone.Store(true)
	if !p.lose() {
		return
	}
	r.m.count.Regained.Add(1)
	r.m.logBatch.note(slog.LevelWarn, regained, p.keys.Number, fmt.Errorf("found: %v", s))
	r.retake(p)
}

// repeat takes a partition over again after Redis has forgotten something of it. The next
// ownership begins with the state in Redis.
func (r *releaser) repeat(p *partition, why error) {
	r.m.count.Regained.Add(1)
	r.m.logBatch.note(slog.LevelWarn, forgotten, p.keys.Number, why)
	r.takeOut(p)
	r.retake(p)
}

// behind ends an ownership at once that Redis has forgotten something of which an owner by position needs, and takes the
// partition over again.
func (r *releaser) behind(p *partition, why error) {
	if p.life.isLost() {
		return
	}
	p.life.behind.Store(true)
	if !p.lose() {
		return
	}
	r.m.count.Regained.Add(1)
	r.m.logBatch.note(slog.LevelWarn, forgotten, p.keys.Number, why)
	r.takeOut(p)
	r.retake(p)
}

// retake ends an ownership while the lock is ours, and owns the partition again under a new
// one. Further calls do nothing.
func (r *releaser) retake(p *partition) {
	if p.life.retaken.Swap(true) {
		return
	}
	r.m.wg.Go(func() {
		if p.life.behind.Load() { // what the end stores would hide what is forgotten
			r.m.heartbeat.askForgotten(context.WithoutCancel(r.m.ctx))
		}
		r.end(p)
		// Not after Release has returned, or after the partition was owned again: then the
		// coordinator decides.
		r.m.ownerships.ifFree(p.keys.Number, func() {
			r.m.coord.Lost(p.keys.Number)
		})
	})
}
