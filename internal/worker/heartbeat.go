package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/prefetch"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/rebalance"
)

// forgottenAtOnce bounds one round of acks that got lost.
const forgottenAtOnce = 1000

// firstHeartbeat makes the heartbeat appear, before the join.
func (m *member) firstHeartbeat(ctx context.Context) error {
	retry := outage.New(m.log, "first heartbeat", &m.count.Errors)
	for {
		sent := monotime.Now()
		refreshed, err := m.w.client.Refresh(ctx, m.heartbeatRequest(), nil)
		if err == nil {
			m.latencies.sync(refreshed.Now, sent, monotime.Now())
			retry.Recovered()
			m.askForgotten(ctx)
			return nil
		}
		retry.Wait(ctx, err)
		if ctx.Err() != nil {
			return errRejoin
		}
	}
}

// heartbeat refreshes the heartbeat and every lock, three times per expiry, and
// reads the membership on the way. It goes on while partitions are drained.
func (m *member) heartbeat(ctx context.Context) {
	every := m.p.Lease / 3
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	retry := outage.New(m.log, "refresh", &m.count.Errors)
	for {
		for ctx.Err() == nil {
			partly, err := m.refresh(ctx)
			if err == nil {
				retry.Recovered()
				m.askForgotten(ctx)
				break
			}
			if partly { // a pause here would cost the leases that are well
				retry.Failed(ctx, err)
				break
			}
			retry.Wait(ctx, err)
		}
		select {
		case <-ctx.Done():
			m.endHeartbeat(ctx)
			return
		case <-ticker.C:
		case <-m.early:
		}
	}
}

// heartbeatRequest is what a refresh writes and reads beside the locks.
func (m *member) heartbeatRequest() store.Heartbeat {
	return store.Heartbeat{Key: m.heartbeatKey, Expiry: m.p.Lease, Info: m.heartbeatInfo(), Membership: m.membership}
}

// refreshSoon asks for a refresh before its time: the heartbeat has something to tell.
func (m *member) refreshSoon() {
	select {
	case m.early <- struct{}{}:
	default:
	}
}

// endHeartbeat deletes the heartbeat, so that no member has to wait for its expiry.
func (m *member) endHeartbeat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := m.w.client.Redis().Del(ctx, m.heartbeatKey).Err(); err != nil {
		m.log.Debug("heartbeat not deleted", "err", err)
	}
}

// refresh is one beat. Of a cluster some nodes may have answered in spite of an error.
func (m *member) refresh(ctx context.Context) (partly bool, err error) {
	m.settled()
	partitions := m.owned()
	renewals, owed, calm := make([]store.LeaseRequest, len(partitions)), make([]prefetch.Owed, len(partitions)), make([]bool, len(partitions))
	for n, p := range partitions {
		renewals[n], owed[n] = p.counting(p.leaseRequest()), p.buffer.Owed()
		calm[n], p.beat.stored.calm = p.beat.stored.calm, false
	}
	limit := m.p.Lease / 3
	if m.w.client.Clustered() {
		limit /= 2 // what answers must not wait for what does not, beat after beat
	}
	ctx, cancel := context.WithTimeout(ctx, max(limit, 100*time.Millisecond))
	defer cancel()
	// The lease counts from before the request: the server's expiry begins later.
	sent := monotime.Now()
	pulse := m.heartbeatRequest()
	pulse.Seen = m.seen
	refreshed, failed := m.w.client.Refresh(ctx, pulse, renewals)
	renewed := refreshed.Leases
	if renewed == nil {
		return false, failed
	}
	m.w.rules.heard(refreshed.Rules)
	if refreshed.Now > 0 {
		if step := m.latencies.sync(refreshed.Now, sent, monotime.Now()); step != 0 {
			m.log.Error("redis clock jumped", "member", m.id, "step", step.Round(time.Second), "help", help.Clock)
		}
	}
	if failed == nil {
		m.count.Refreshes.Add(1)
	}
	late := errors.Join(failed, refreshed.Unread)
	for n, p := range partitions {
		switch renewed[n].State {
		case store.Ours:
		case store.Unknown: // its lease goes on as it was, and ends
			continue
		default:
			m.judge(p, renewed[n].State)
			continue
		}
		p.lease.Store(leaseDeadline(sent, m.p.Lease))
		p.countedBy(renewals[n], renewed[n])
		m.wentBack(p, calm[n], renewals[n], renewed[n])
		if renewed[n].OperatorVersion != p.beat.notifications {
			p.beat.notifications = renewed[n].OperatorVersion
			p.notify()
		}
		m.w.forwarder.heard(p, renewed[n].Due)
		late = errors.Join(late, m.ackForgotten(ctx, p, renewed[n]), m.recover(ctx, p, owed[n], renewed[n]))
	}
	if refreshed.Unread == nil {
		m.seen = refreshed.Membership
		m.coord.Observe(refreshed.Membership)
	} else if errors.As(refreshed.Unread, new(*rebalance.UnreadableError)) {
		m.coord.Unread(refreshed.Unread)
	}
	return failed != nil || refreshed.Unread != nil, late
}

// owned are the ownerships to refresh, ending ones too.
func (m *member) owned() []*partition {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*partition, 0, len(m.partitions))
	for _, p := range m.partitions {
		if !p.isLost() {
			out = append(out, p)
		}
	}
	return out
}

// ackForgotten acks again what is pending though we have acked it: a failover to a
// replica that was behind brings such entries back, and nobody else ever would ack
// them. Of anything else that is pending there we know nothing: Redis forgot that it
// was parked, or it was appended with an ID that went back, as where two servers took
// themselves for the master for a moment, and delivered in a reply that is late or
// lost. Then nothing is acked, and the partition is taken over again.
func (m *member) ackForgotten(ctx context.Context, p *partition, r store.LeaseResult) error {
	upTo, ok := p.buffer.PendingBelow(r.Lowest)
	if r.Pending == 0 || !ok || p.life.retaken.Load() {
		return nil
	}
	ids, err := m.w.client.PendingBelow(ctx, p.keys, m.group, upTo, forgottenAtOnce)
	if err != nil || len(ids) == 0 {
		return err
	}
	if !p.buffer.HasAcked(ids) {
		if !p.isEnding() {
			m.repeat(p, fmt.Errorf("%s is pending, and not known to be done", ids[0]))
		}
		return nil
	}
	p.log.Info("forgotten acks sent again", "events", len(ids), "event", entryid.EventID(p.keys.Number, ids[0]))
	return m.w.client.Ack(ctx, m.group, []store.Ack{{Place: p.keys, IDs: ids}})[0]
}
