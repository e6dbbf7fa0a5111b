package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

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

	// loopContext is what a function that does not return may have overlooked.
	loopContext = "events.Context(), not the ctx that its function was given"
)

// Release hands a partition over; see rebalance.Owner. It blocks until the
// user's function returns, however long that takes, unless the incarnation ends.
func (i *incarnation) Release(_ context.Context, partition int) error {
	i.mu.Lock()
	t, number := i.tenures[partition], i.claims[partition]
	i.leaving[partition] = true
	i.mu.Unlock()
	switch {
	case t != nil:
		i.end(t)
	case number.Number != 0: // of a try that led to nothing, and may have left a lock
		i.undo(i.w.client.Place(i.p.Stream, i.p.Name, partition), number)
		i.unclaim(partition)
	}
	return nil
}

// end ends a tenure, once; further calls wait until it has. The order matters:
//
//  1. nothing more is delivered;
//  2. no read that names the partition can be executed any more. Otherwise, if
//     this very executor owns it again soon, the old read would take events of
//     the new tenure, whose group has the same name;
//  3. the function returns: its last event is done or not done;
//  4. its acks are confirmed, for after the release they would be void;
//  5. the lock is released, under this tenure's value: a late release of this
//     tenure cannot touch a later one.
func (i *incarnation) end(t *tenure) {
	t.endIt.Do(func() {
		t.beginEnd()
		t.log.Debug("partition is being released", "member", i.id)
		i.w.moves.remove(t)
		quiet := i.fetch.remove(t)
		returned := i.awaitConsumer(t)
		switch {
		case !returned:
			// It may still write somewhere: the lock keeps others out until it
			// expires.
			i.addStuck(t)
		case quiet && t.flush():
			i.unlock(t)
		default:
			if t.groupGone.Load() {
				i.saveFloor(t)
			}
			i.undo(t.place, t.number)
		}
		i.mu.Lock()
		if i.tenures[t.place.Partition] == t {
			delete(i.tenures, t.place.Partition)
		}
		i.mu.Unlock()
		i.w.rules.dismiss(t)
		close(t.ended)
		t.log.Debug("partition released", "member", i.id, "lost", t.isLost(), "abandoned", !returned)
		if returned {
			i.journal.note(slog.LevelInfo, released, t.place.Partition, nil)
		} else {
			i.journal.note(slog.LevelError, abandoned, t.place.Partition, nil)
		}
	})
}

// awaitConsumer waits until the consumer has returned. After Grace its context
// ends. Then it goes on waiting while the incarnation lives, and reports; when
// the incarnation ends, it gives up after a second more.
func (i *incarnation) awaitConsumer(t *tenure) (returned bool) {
	grace := time.NewTimer(i.p.Grace)
	defer grace.Stop()
	defer time.AfterFunc(waitingAfter, func() { i.tellWaiting(t) }).Stop()
	select {
	case <-t.finished:
		return true
	case <-grace.C:
	}
	t.cancel(i.endCause())
	late := time.NewTimer(stuckPatience)
	defer late.Stop()
	ended := i.ctx.Done()
	for reported := false; ; {
		select {
		case <-t.finished:
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
				i.count.Stuck.Add(1)
			}
			t.log.Error("function is stuck: the partition was asked for, and it does not return though its context has ended; the partition stays here until it does, and a loop has to heed "+loopContext,
				"after", time.Duration(monotime.Now()-t.running.Load()).Round(time.Second))
			late.Reset(time.Minute)
		}
	}
}

// tellWaiting says at shutdown whose function the worker waits for.
func (i *incarnation) tellWaiting(t *tenure) {
	if i.w.stopping() {
		i.journal.add(entry{level: slog.LevelInfo, what: fmt.Sprintf(waiting, i.p.Grace), partition: t.place.Partition, since: t.running.Load()})
	}
}

// endCause is why a partition is given up.
func (i *incarnation) endCause() error {
	if i.w.stopping() {
		return ErrShutdown
	}
	return ErrReleased
}

// saveFloor stores how far we have come, where our group does not say so any
// more. If it does not work, what was done since the last refresh is repeated.
func (i *incarnation) saveFloor(t *tenure) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(i.ctx), time.Second)
	defer cancel()
	_, err := i.w.client.Refresh(ctx, i.pulse(), []store.Renewal{t.renewal()})
	if err != nil {
		t.log.Warn("position not stored: events since the last refresh are repeated", "err", err)
	}
}

// unlock releases the lock while the lease holds; then it expires by itself.
func (i *incarnation) unlock(t *tenure) {
	t.freeing.Store(true)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(i.ctx), max(0, time.Duration(t.lease.Load()-monotime.Now())))
	defer cancel()
	retry := outage.New(t.log, "release of the lock", &t.count.Errors)
	for {
		held, err := i.w.client.Release(ctx, t.renewal())
		if err == nil && !held { // as where Redis has forgotten the membership, too
			i.part(t)
		}
		if err == nil || ctx.Err() != nil || !redisconn.Unavailable(err) {
			if err != nil {
				i.journal.note(slog.LevelWarn, notReleased, t.place.Partition, err)
			}
			return
		}
		retry.Wait(ctx, err)
	}
}

func (i *incarnation) addStuck(t *tenure) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stuck = append(i.stuck, t.place.Partition)
}

func (i *incarnation) stuckPartitions() []int {
	i.mu.Lock()
	defer i.mu.Unlock()
	slices.Sort(i.stuck)
	return i.stuck
}

// suspect looks at one tenure whose group did not answer an ack as ours. If it
// is ours after all, its acks are sent again.
func (i *incarnation) suspect(t *tenure) {
	i.wg.Go(func() {
		// Not the handler's context: the drain needs the answer too.
		ctx := context.WithoutCancel(i.ctx)
		retry := outage.New(t.log, "acks", &t.count.Errors)
		for !t.isLost() && !t.hasEnded() {
			err := i.probe(ctx, []*tenure{t}, store.ErrFenced)
			if err == nil {
				return
			}
			retry.Wait(ctx, err)
			if errors.Is(err, store.ErrFenced) {
				i.acks.mark(t)
				return
			}
		}
	})
}

// probe finds out which of these tenures are over, after a reply that named
// none of them, and ends just those. If all are ours the reason is returned.
func (i *incarnation) probe(ctx context.Context, set []*tenure, reason error) error {
	renewals := make([]store.Renewal, len(set))
	for n, t := range set {
		renewals[n] = t.renewal()
	}
	states, err := i.w.client.Probe(ctx, renewals)
	if err != nil {
		return err
	}
	found := false
	for n, t := range set {
		found = i.judge(t, states[n]) || found
	}
	if found {
		return nil
	}
	return reason
}

// judge acts on what the server thinks of a tenure and reports whether it is over.
func (i *incarnation) judge(t *tenure, s store.State) bool {
	if t.hasEnded() {
		return true // what was seen is our own release
	}
	switch s {
	case store.Ours:
		return false
	case store.Lost:
		if t.unlocking() {
			return true
		}
		i.lose(t, errors.New("the lock is gone or somebody else's"))
	default:
		i.regain(t, s)
	}
	return true
}

// regain ends a tenure whose group was destroyed while the lock is still ours,
// and takes the partition over again under a new one. Nothing else is affected.
func (i *incarnation) regain(t *tenure, s store.State) {
	t.groupGone.Store(true)
	if !t.lose() {
		return
	}
	i.count.Regained.Add(1)
	i.journal.note(slog.LevelWarn, regained, t.place.Partition, fmt.Errorf("found: %v", s))
	i.retake(t)
}

// repeat takes a partition over again of which Redis has forgotten something: what is
// to be done is what Redis knows.
func (i *incarnation) repeat(t *tenure, why error) {
	i.count.Regained.Add(1)
	i.journal.note(slog.LevelWarn, forgotten, t.place.Partition, why)
	i.part(t)
	i.retake(t)
}

// retake ends a tenure while the lock is ours, and owns the partition again
// under a new one; once, for two may have a reason.
func (i *incarnation) retake(t *tenure) {
	if t.retaken.Swap(true) {
		return
	}
	i.wg.Go(func() {
		i.end(t)
		i.mu.Lock()
		defer i.mu.Unlock()
		// Not after Release has returned: then it is the coordinator's turn.
		// Nor after it was owned again since.
		if !i.leaving[t.place.Partition] && i.tenures[t.place.Partition] == nil {
			i.coord.Lost(t.place.Partition)
		}
	})
}
