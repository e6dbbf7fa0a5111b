package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
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

// Release hands a partition over; see rebalance.Owner. It blocks until the
// user's function returns, however long that takes, unless the member ends.
func (m *member) Release(_ context.Context, partition int) error {
	m.mu.Lock()
	p, number := m.partitions[partition], m.openClaims[partition]
	m.leaving[partition] = true
	m.mu.Unlock()
	switch {
	case p != nil:
		m.end(p)
	case number.Number != 0: // of a try that led to nothing, and may have left a lock
		m.undo(m.w.client.Partition(m.p.Stream, m.p.Name, partition), number)
		m.unclaim(partition)
	}
	return nil
}

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
func (m *member) end(p *partition) {
	p.life.endIt.Do(func() {
		p.beginEnd()
		p.log.Debug("partition is being released", "member", m.id)
		m.w.forwarder.remove(p)
		quiet := m.fetch.remove(p)
		returned := m.awaitConsumer(p)
		switch {
		case !returned:
			// It may still write somewhere: the lock keeps others out until it
			// expires.
			m.addStuck(p)
		case quiet && p.flush():
			m.unlock(p)
		default:
			if p.life.groupGone.Load() {
				m.saveCommitted(p)
			}
			m.undo(p.keys, p.claim)
		}
		m.mu.Lock()
		if m.partitions[p.keys.Number] == p {
			delete(m.partitions, p.keys.Number)
		}
		m.mu.Unlock()
		m.w.rules.dismiss(p)
		close(p.life.ended)
		if returned {
			m.logBatch.note(slog.LevelInfo, released, p.keys.Number, nil)
		} else {
			m.logBatch.note(slog.LevelError, abandoned, p.keys.Number, nil)
		}
	})
}

// awaitConsumer waits until the consumer has returned. After Grace its context
// ends. Then it goes on waiting while the member lives, and reports; when
// the member ends, it gives up after a second more.
func (m *member) awaitConsumer(p *partition) (returned bool) {
	grace := time.NewTimer(m.p.Grace)
	defer grace.Stop()
	defer time.AfterFunc(waitingAfter, func() { m.tellWaiting(p) }).Stop()
	select {
	case <-p.life.finished:
		return true
	case <-grace.C:
	}
	p.cancel(m.endCause())
	late := time.NewTimer(stuckPatience)
	defer late.Stop()
	ended := m.ctx.Done()
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
				m.count.Stuck.Add(1)
			}
			p.log.Error("function is stuck", "op", "release", "after", time.Duration(monotime.Now()-p.running.Load()).Round(time.Second), "help", help.FunctionStuck)
			late.Reset(time.Minute)
		}
	}
}

// tellWaiting says at shutdown whose function the worker waits for.
func (m *member) tellWaiting(p *partition) {
	if m.w.stopping() {
		m.logBatch.add(entry{level: slog.LevelInfo, what: waiting, partition: p.keys.Number, since: p.running.Load(), grace: m.p.Grace})
	}
}

// endCause is why a partition is given up.
func (m *member) endCause() error {
	if m.w.stopping() {
		return ErrShutdown
	}
	return ErrReleased
}

// saveCommitted stores how far we have come, where our group does not say so any
// more. If it does not work, what was done since the last refresh is repeated.
func (m *member) saveCommitted(p *partition) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx), time.Second)
	defer cancel()
	_, err := m.w.client.Refresh(ctx, m.heartbeatRequest(), []store.LeaseRequest{p.leaseRequest()})
	if err != nil {
		p.log.Warn("position not stored", "err", err)
	}
}

// unlock releases the lock while the lease holds; then it expires by itself.
func (m *member) unlock(p *partition) {
	p.life.freeing.Store(true)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx), max(0, time.Duration(p.lease.Load()-monotime.Now())))
	defer cancel()
	retry := outage.New(p.log, "release of the lock", &p.count.Errors)
	for {
		held, err := m.w.client.Release(ctx, p.leaseRequest())
		if err == nil && !held { // as where Redis has forgotten the membership, too
			m.takeOut(p)
		}
		if err == nil || ctx.Err() != nil || !redisconn.Unavailable(err) {
			if err != nil {
				m.logBatch.note(slog.LevelWarn, notReleased, p.keys.Number, err)
			}
			return
		}
		retry.Wait(ctx, err)
	}
}

func (m *member) addStuck(p *partition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stuck = append(m.stuck, p.keys.Number)
}

func (m *member) stuckPartitions() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.Sort(m.stuck)
	return m.stuck
}

// suspect looks at one ownership whose group did not answer an ack as ours. If it
// is ours after all, its acks are sent again.
func (m *member) suspect(p *partition) {
	m.wg.Go(func() {
		// Not the handler's context: the drain needs the answer too.
		ctx := context.WithoutCancel(m.ctx)
		retry := outage.New(p.log, "acks", &p.count.Errors)
		for !p.isLost() && !p.hasEnded() {
			err := m.probe(ctx, []*partition{p}, store.ErrFenced)
			if err == nil {
				return
			}
			retry.Wait(ctx, err)
			if errors.Is(err, store.ErrFenced) {
				m.acks.mark(p)
				return
			}
		}
	})
}

// probe finds out which of these ownerships are over, after a reply that named
// none of them, and ends just those. If all are ours the reason is returned.
func (m *member) probe(ctx context.Context, set []*partition, reason error) error {
	renewals := make([]store.LeaseRequest, len(set))
	for n, p := range set {
		renewals[n] = p.leaseRequest()
	}
	states, err := m.w.client.Probe(ctx, renewals)
	if err != nil {
		return err
	}
	found := false
	for n, p := range set {
		found = m.judge(p, states[n]) || found
	}
	if found {
		return nil
	}
	return reason
}

// judge acts on what the server thinks of an ownership and reports whether it is over.
func (m *member) judge(p *partition, s store.State) bool {
	if p.hasEnded() {
		return true // what was seen is our own release
	}
	switch s {
	case store.Ours:
		return false
	case store.Lost:
		if p.unlocking() {
			return true
		}
		m.lose(p, errors.New("the lock is gone or held by another executor"))
	default:
		m.regain(p, s)
	}
	return true
}

// regain ends an ownership whose group was destroyed while the lock is still ours,
// and takes the partition over again under a new one. Nothing else is affected.
func (m *member) regain(p *partition, s store.State) {
	p.life.groupGone.Store(true)
	if !p.lose() {
		return
	}
	m.count.Regained.Add(1)
	m.logBatch.note(slog.LevelWarn, regained, p.keys.Number, fmt.Errorf("found: %v", s))
	m.retake(p)
}

// repeat takes a partition over again of which Redis has forgotten something: what is
// to be done is what Redis knows.
func (m *member) repeat(p *partition, why error) {
	m.count.Regained.Add(1)
	m.logBatch.note(slog.LevelWarn, forgotten, p.keys.Number, why)
	m.takeOut(p)
	m.retake(p)
}

// retake ends an ownership while the lock is ours, and owns the partition again
// under a new one; once, for two may have a reason.
func (m *member) retake(p *partition) {
	if p.life.retaken.Swap(true) {
		return
	}
	m.wg.Go(func() {
		m.end(p)
		m.mu.Lock()
		defer m.mu.Unlock()
		// Not after Release has returned: then it is the coordinator's turn.
		// Nor after it was owned again since.
		if !m.leaving[p.keys.Number] && m.partitions[p.keys.Number] == nil {
			m.coord.Lost(p.keys.Number)
		}
	})
}
