package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/prefetch"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/rebalance"
)

// straysAtOnce bounds one round of acks that got lost.
const straysAtOnce = 1000

// firstBeat makes the heartbeat appear, before the join.
func (i *incarnation) firstBeat(ctx context.Context) error {
	retry := outage.New(i.log, "first heartbeat", &i.count.Errors)
	for {
		sent := monotime.Now()
		refreshed, err := i.w.client.Refresh(ctx, i.pulse(), nil)
		if err == nil {
			i.latencies.sync(refreshed.Now, sent, monotime.Now())
			retry.Recovered()
			i.askForgotten(ctx)
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
func (i *incarnation) heartbeat(ctx context.Context) {
	every := i.p.LockExpiry / 3
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	retry := outage.New(i.log, "refresh", &i.count.Errors)
	for {
		for ctx.Err() == nil {
			partly, err := i.refresh(ctx)
			if err == nil {
				retry.Recovered()
				i.askForgotten(ctx)
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
			i.endBeat(ctx)
			return
		case <-ticker.C:
		case <-i.early:
		}
	}
}

// pulse is what a refresh writes and reads beside the locks.
func (i *incarnation) pulse() store.Pulse {
	return store.Pulse{Key: i.beat, Expiry: i.p.LockExpiry, Beat: i.told(), Membership: i.membership}
}

// hurry asks for a refresh before its time: the heartbeat has something to tell.
func (i *incarnation) hurry() {
	select {
	case i.early <- struct{}{}:
	default:
	}
}

// endBeat deletes the heartbeat, so that nobody has to wait for its expiry.
func (i *incarnation) endBeat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := i.w.client.Redis().Del(ctx, i.beat).Err(); err != nil {
		i.log.Debug("heartbeat not deleted, it expires", "err", err)
	}
}

// refresh is one beat. Of a cluster some nodes may have answered in spite of an error.
func (i *incarnation) refresh(ctx context.Context) (partly bool, err error) {
	i.settled()
	tenures := i.owned()
	renewals, owed, calm := make([]store.Renewal, len(tenures)), make([]prefetch.Owed, len(tenures)), make([]bool, len(tenures))
	for n, t := range tenures {
		renewals[n], owed[n] = t.counting(t.renewal()), t.buffer.Owed()
		calm[n], t.stored.calm = t.stored.calm, false
	}
	limit := i.p.LockExpiry / 3
	if i.w.client.Clustered() {
		limit /= 2 // what answers must not wait for what does not, beat after beat
	}
	ctx, cancel := context.WithTimeout(ctx, max(limit, 100*time.Millisecond))
	defer cancel()
	// The lease counts from before the request: the server's expiry begins later.
	sent := monotime.Now()
	pulse := i.pulse()
	pulse.Seen = i.seen
	refreshed, failed := i.w.client.Refresh(ctx, pulse, renewals)
	renewed := refreshed.Renewed
	if renewed == nil {
		return false, failed
	}
	i.w.rules.heard(refreshed.Rules)
	if refreshed.Now > 0 {
		if step := i.latencies.sync(refreshed.Now, sent, monotime.Now()); step != 0 {
			i.log.Error("the clock of Redis was set, or this machine slept: locks and heartbeats may have ended too early, or may last too long; let clocks be slewed", "member", i.id, "err", fmt.Errorf("by %v", step.Round(time.Second)))
		}
	}
	if failed == nil {
		i.count.Refreshes.Add(1)
	}
	late := errors.Join(failed, refreshed.Unread)
	for n, t := range tenures {
		switch renewed[n].State {
		case store.Ours:
		case store.Unknown: // its lease goes on as it was, and ends
			continue
		default:
			i.judge(t, renewed[n].State)
			continue
		}
		t.lease.Store(leaseEnd(sent, i.p.LockExpiry))
		t.countedBy(renewals[n], renewed[n])
		i.wentBack(t, calm[n], renewals[n], renewed[n])
		if renewed[n].Poke != t.poked {
			t.poked = renewed[n].Poke
			t.poke()
		}
		i.w.moves.heard(t, renewed[n].Due)
		late = errors.Join(late, i.ackStrays(ctx, t, renewed[n]), i.recover(ctx, t, owed[n], renewed[n]))
	}
	if refreshed.Unread == nil {
		i.seen = refreshed.Membership
		i.coord.Observe(refreshed.Membership)
	} else if errors.As(refreshed.Unread, new(*rebalance.UnreadableError)) {
		i.coord.Unread(refreshed.Unread)
	}
	return failed != nil || refreshed.Unread != nil, late
}

// owned are the tenures to refresh, ending ones too.
func (i *incarnation) owned() []*tenure {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := make([]*tenure, 0, len(i.tenures))
	for _, t := range i.tenures {
		if !t.isLost() {
			out = append(out, t)
		}
	}
	return out
}

// ackStrays acks again what is pending though we have acked it: a failover to a
// replica that was behind brings such entries back, and nobody else ever would ack
// them. Of anything else that is pending there we know nothing: Redis forgot that it
// was parked, or it was appended with an ID that went back, as where two servers took
// themselves for the master for a moment, and delivered in a reply that is late or
// lost. Then nothing is acked, and the partition is taken over again.
func (i *incarnation) ackStrays(ctx context.Context, t *tenure, r store.Renewed) error {
	upTo, ok := t.buffer.PendingBelow(r.Lowest)
	if r.Pending == 0 || !ok || t.retaken.Load() {
		return nil
	}
	ids, err := i.w.client.Strays(ctx, t.place, i.group, upTo, straysAtOnce)
	if err != nil || len(ids) == 0 {
		return err
	}
	if !t.buffer.HasAcked(ids) {
		if !t.isEnding() {
			i.repeat(t, fmt.Errorf("%s is pending, and not known to be done", ids[0]))
		}
		return nil
	}
	t.log.Info("acking again what Redis forgot", "events", len(ids), "first", ids[0])
	return i.w.client.Ack(ctx, i.group, []store.Ack{{Place: t.place, IDs: ids}})[0]
}
