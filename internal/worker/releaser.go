package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

const (
	// stuckPatience is how long after Grace a function may still take to return.
	stuckPatience = time.Second
	// waitingAfter is how long a function may take at shutdown before the log tells of it.
	waitingAfter = 300 * time.Millisecond
)

// A releaser ends the ownerships of a member: it releases their locks, finds out which of them
// are lost, and takes over again those that the member may keep. Its methods may be called
// concurrently. A releaser is the host of the member's partitions.
type releaser struct{ m *member }

// end ends an ownership, once; further calls wait until it has. The order matters:
//
//  1. nothing more is delivered;
//  2. no read that names the partition can be executed any more. Otherwise, if
//     this very executor owns it again soon, the old read would take events of
//     the new ownership, whose group has the same name;
//  3. the function returns: its last event is done or not done;
//  4. its acks are confirmed, for after the release they would be void;
//  5. the lock is released, under this ownership's value: a late release of this
//     ownership cannot touch a later one.
func (r *releaser) end(p *partition) {
	p.life.endIt.Do(func() {
		p.beginEnd()
		p.log.Debug("partition is being released", "member", r.m.id)
		r.m.w.forwarder.remove(p)
		quiet := r.m.fetch.remove(p)
		returned := r.awaitConsumer(p)
		switch {
		case !returned:
			// It may still write somewhere: the lock keeps others out until it
			// expires.
			r.m.ownerships.addStuck(p)
		case quiet && p.flush():
			r.unlock(p)
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
// context. Then it goes on waiting while the member lives, and reports. When
// the member ends, it gives up after a second more.
func (r *releaser) awaitConsumer(p *partition) (returned bool) {
	grace := time.NewTimer(r.m.p.Grace)
	defer grace.Stop()
	defer time.AfterFunc(waitingAfter, func() { r.tellWaiting(p) }).Stop()
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

// tellWaiting logs at shutdown which partition's function the worker waits for.
func (r *releaser) tellWaiting(p *partition) {
	if r.m.w.stopping() {
		r.m.logBatch.add(entry{level: slog.LevelInfo, what: waiting, partition: p.keys.Number, since: p.running.Load(), grace: r.m.p.Grace})
	}
}

// endCause is why a partition is given up.
func (r *releaser) endCause() error {
	if r.m.w.stopping() {
		return ErrShutdown
	}
	return ErrReleased
}

// saveCommitted stores how far we have come, where our group does not say so any
// more. If that fails, what was done since the last refresh is repeated.
func (r *releaser) saveCommitted(p *partition) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.m.ctx), time.Second)
	defer cancel()
	_, err := r.m.w.client.Refresh(ctx, r.m.heartbeat.request(), []store.LeaseRequest{p.leaseRequest()})
	if err != nil {
		p.log.Warn("position not stored", "err", err)
	}
}

// unlock releases the lock while the lease holds. After that the lock expires by itself.
func (r *releaser) unlock(p *partition) {
	p.life.freeing.Store(true)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.m.ctx), max(0, time.Duration(p.lease.end.Load()-monotime.Now())))
	defer cancel()
	retry := outage.New(p.log, "release of the lock", &p.count.Errors)
	for {
		held, err := r.m.w.client.Release(ctx, p.leaseRequest())
		if err == nil && !held { // as where Redis has forgotten the membership, too
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

// leaseEnded loses an ownership whose lease is over.
func (r *releaser) leaseEnded(p *partition) { r.lose(p, errLeaseEnded) }

// lose ends an ownership that may have another owner, and the member with it. One
// that has ended holds nothing that could be lost.
func (r *releaser) lose(p *partition, err error) {
	if p.life.hasEnded() || !p.lose() {
		return
	}
	r.m.count.LostPartitions.Add(1)
	r.takeOut(p)
	r.m.logBatch.note(slog.LevelWarn, lost, p.keys.Number, err)
	r.m.surprise(fmt.Errorf("partition %d: %w", p.keys.Number, err))
}

// takeOut notes what was known of a partition that was lost, or of whose events Redis knows
// something else.
func (r *releaser) takeOut(p *partition) {
	given, _ := p.buffer.Delivered()
	r.m.history.parts(store.Known{Place: p.keys, Group: r.m.group, Epoch: p.epoch, Given: given})
}

// suspect looks at one ownership whose group did not answer an ack as ours. If it
// is ours after all, its acks are sent again.
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
			if errors.Is(err, store.ErrFenced) {
				r.m.acks.mark(p)
				return
			}
		}
	})
}

// probe finds out which of these ownerships are over, after a reply that named
// none of them, and ends just those. If all are ours the reason is returned.
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

// judge acts on what the server thinks of an ownership and reports whether it is over.
func (r *releaser) judge(p *partition, s store.State) bool {
	if p.life.hasEnded() {
		return true // what was seen is our own release
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

// repeat takes a partition over again of which Redis has forgotten something. The next
// ownership begins with what Redis knows.
func (r *releaser) repeat(p *partition, why error) {
	r.m.count.Regained.Add(1)
	r.m.logBatch.note(slog.LevelWarn, forgotten, p.keys.Number, why)
	r.takeOut(p)
	r.retake(p)
}

// retake ends an ownership while the lock is ours, and owns the partition again
// under a new one. It does so once, though two callers may have a reason.
func (r *releaser) retake(p *partition) {
	if p.life.retaken.Swap(true) {
		return
	}
	r.m.wg.Go(func() {
		r.end(p)
		// Not after Release has returned: then it is the coordinator's turn.
		// Nor after it was owned again since.
		r.m.ownerships.ifFree(p.keys.Number, func() {
			r.m.coord.Lost(p.keys.Number)
		})
	})
}
