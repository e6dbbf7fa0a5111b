package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/prefetch"
	"github.com/runnel-go/runnel/internal/rules"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/rebalance"
)

// A heartbeat shows that a member is alive and extends its leases.
type heartbeat struct {
	m               *member
	key, membership string // of Redis
	early           signal // a refresh is wanted before its time
	seen            []byte // the membership as the last refresh read it; of run

	mu       sync.Mutex
	inEffect rules.Generations // as they were last seen in full effect
}

func newHeartbeat(m *member) *heartbeat {
	k := m.w.client.Keys()
	return &heartbeat{
		m: m, key: k.Beat(m.p.Stream, m.p.Name, m.id), membership: k.Membership(m.p.Stream, m.p.Name),
		early: newSignal(),
	}
}

// first writes the first heartbeat, before the join.
func (h *heartbeat) first(ctx context.Context) error {
	retry := outage.New(h.m.log, "first heartbeat", &h.m.count.Errors)
	for {
		sent := monotime.Now()
		refreshed, err := h.m.w.client.Refresh(ctx, h.request(), nil)
		if err == nil {
			h.m.latencies.sync(refreshed.Now, sent, monotime.Now())
			retry.Recovered()
			h.askForgotten(ctx)
			return nil
		}
		retry.Wait(ctx, err)
		if ctx.Err() != nil {
			return errRejoin
		}
	}
}

// run refreshes the heartbeat and every lock, three times per expiry, and reads the membership on
// the way. It goes on while partitions are drained. At the end of ctx it deletes the heartbeat.
func (h *heartbeat) run(ctx context.Context) {
	every := h.m.p.Lease / 3
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	retry := outage.New(h.m.log, "refresh", &h.m.count.Errors)
	for {
		for ctx.Err() == nil {
			partly, err := h.refresh(ctx)
			if err == nil {
				retry.Recovered()
				h.askForgotten(ctx)
				break
			}
			if partly { // a pause would cost the leases of nodes that answer
				retry.Failed(ctx, err)
				break
			}
			retry.Wait(ctx, err)
		}
		select {
		case <-ctx.Done():
			h.end(ctx)
			return
		case <-ticker.C:
		case <-h.early:
		}
	}
}

// request returns the parts of a refresh that concern no partition.
func (h *heartbeat) request() store.Heartbeat {
	return store.Heartbeat{Key: h.key, Expiry: h.m.p.Lease, Info: h.info(), Membership: h.membership}
}

// info returns the heartbeat's content: the rules in full effect, and the functions that have been
// running for long.
func (h *heartbeat) info() store.HeartbeatInfo {
	known := h.m.w.rules.generations()
	unread, _ := h.m.fetch.notReading()
	h.mu.Lock()
	defer h.mu.Unlock()
	partitions, stuck := h.m.ownerships.all()
	b := store.HeartbeatInfo{Running: map[int]time.Time{}, NotReading: map[int]time.Time{}}
	calm := !stuck
	now := monotime.Now()
	for partition, since := range unread {
		b.NotReading[partition] = time.Now().Add(-time.Duration(now - since))
	}
	for _, p := range partitions {
		held, since := p.held.Load(), p.running.Load()
		others, heldBack := p.calls.running(&p.held)
		calm = calm && !heldBack && !(held && since != 0)
		if since == 0 || others != 0 && others < since {
			since = others
		}
		if since == 0 {
			continue
		}
		if took := time.Duration(now - since); took > longRunning || p.stuck.Load() {
			b.Running[p.keys.Number] = time.Now().Add(-took)
		}
	}
	if calm {
		h.inEffect = known
	}
	b.Rules = h.inEffect
	return b
}

// soon asks for an early refresh, since the heartbeat's content has changed.
func (h *heartbeat) soon() { h.early.set() }

// end deletes the heartbeat, so that no member has to wait for its expiry.
func (h *heartbeat) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := h.m.w.client.Redis().Del(ctx, h.key).Err(); err != nil {
		h.m.log.Debug("heartbeat not deleted", "err", err)
	}
}

// refresh is one heartbeat. In a cluster some nodes may answer in spite of an error.
func (h *heartbeat) refresh(ctx context.Context) (partly bool, err error) {
	h.m.settled()
	partitions := h.m.ownerships.owned()
	renewals, owed, calm := make([]store.LeaseRequest, len(partitions)), make([]prefetch.Owed, len(partitions)), make([]bool, len(partitions))
	for n, p := range partitions {
		renewals[n], owed[n] = p.beat.gaps.ask(p, p.leaseRequest()), p.buffer.Owed()
		calm[n], p.beat.stored.calm = p.beat.stored.calm, false
	}
	limit := h.m.p.Lease / 3
	if h.m.w.client.Clustered() {
		limit /= 2 // nodes that answer must not wait for others, beat after beat
	}
	ctx, cancel := context.WithTimeout(ctx, max(limit, 100*time.Millisecond))
	defer cancel()
	// The lease counts from before the request: the server's expiry begins later.
	sent := monotime.Now()
	pulse := h.request()
	pulse.Seen = h.seen
	refreshed, failed := h.m.w.client.Refresh(ctx, pulse, renewals)
	renewed := refreshed.Leases
	if renewed == nil {
		return false, failed
	}
	h.m.w.rules.sawGenerations(refreshed.Rules)
	h.sawClock(refreshed.Now, sent)
	if failed == nil {
		h.m.count.Refreshes.Add(1)
	}
	late := errors.Join(failed, refreshed.Unread)
	for n, p := range partitions {
		switch renewed[n].State {
		case store.Ours:
		case store.Unknown: // its lease is not extended
			continue
		default:
			h.m.releases.judge(p, renewed[n].State)
			continue
		}
		p.lease.end.Store(leaseDeadline(sent, h.m.p.Lease))
		p.reaches(renewals[n].Claim.Reach)
		if p.beat.gaps.take(p, renewals[n], renewed[n]); renewed[n].Suspect {
			h.m.fetch.wakeReader(p)
		}
		h.wentBack(p, calm[n], renewals[n], renewed[n])
		if renewed[n].OperatorVersion != p.beat.notifications {
			p.beat.notifications = renewed[n].OperatorVersion
			p.source.notify()
		}
		h.m.w.forwarder.sawDue(p, renewed[n].Due)
		late = errors.Join(late, h.m.course.renewed(ctx, p, renewals[n], owed[n], renewed[n]))
	}
	if refreshed.Unread == nil {
		h.seen = refreshed.Membership
		h.m.coord.Observe(refreshed.Membership)
	} else if errors.As(refreshed.Unread, new(*rebalance.UnreadableError)) {
		h.m.coord.Unread(refreshed.Unread)
	}
	return failed != nil || refreshed.Unread != nil, late
}

// sawClock compares the server's clock with ours; now is 0 if it did not tell.
func (h *heartbeat) sawClock(now, sent int64) {
	if now == 0 {
		return
	}
	if step := h.m.latencies.sync(now, sent, monotime.Now()); step != 0 {
		h.m.log.Error("redis clock jumped", "member", h.m.id, "step", step.Round(time.Second), "help", help.Clock)
	}
}
