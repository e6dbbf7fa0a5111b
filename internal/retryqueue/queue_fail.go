package retryqueue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// Sift takes out what may not be processed now: an event that may have ended the
// owner before, one to skip, those of keys of which something is parked, which are
// parked behind it, and those that were taken out before: they come again where one
// before them was not acked, or the position was reset. It returns the others, in
// the same memory, and the IDs of those to ack.
func (r *Queue) Sift(entries []redisconn.Entry) (rest []redisconn.Entry, acks []string, err error) {
	if r.lanes.len() == 0 && !r.Looking() {
		return entries, nil, nil
	}
	keyed := r.lanes.len() > 0 && r.order() != OrderNone
	rest = entries[:0]
	var ps []store.Parking
	for _, e := range entries {
		switch {
		case e.ID == r.skip:
			r.skip = ""
			r.skipped(e.ID)
			acks = append(acks, e.ID)
		case r.lanes.of[e.ID] != nil || slices.Contains(r.setAside, e.ID):
			acks = append(acks, e.ID)
		case e.ID == r.suspect:
			r.suspect = ""
			if r.cfg.Deaths >= max(r.cfg.Retry.Max, 2) { // to find its key may be what ends a worker
				if err := r.bury(context.Background(), e, r.deadly(e)); err != nil {
					return rest, acks, err
				}
				break
			}
			ps = append(ps, store.Parking{Entry: e, State: r.suspected(e)})
		default:
			if state, ok := r.behind(e, keyed); ok {
				ps = append(ps, store.Parking{Entry: e, State: state})
			} else {
				rest = append(rest, e)
			}
		}
		r.pass(e.ID)
	}
	return rest, acks, r.park(ps)
}

// pass forgets what was looked for and cannot come any more.
func (r *Queue) pass(id string) {
	if r.suspect != "" && entryid.Compare(r.suspect, id) < 0 {
		r.suspect = ""
	}
	if r.skip != "" && entryid.Compare(r.skip, id) < 0 {
		r.skip = ""
	}
	r.setAside = slices.DeleteFunc(r.setAside, func(aside string) bool { return entryid.Compare(aside, id) <= 0 })
}

// behind is the state of an event that has to wait in a lane before its first
// attempt; false: it need not.
func (r *Queue) behind(e redisconn.Entry, keyed bool) (s store.RetryState, ok bool) {
	if !keyed {
		return s, false
	}
	key, ok := r.cfg.Key(e)
	lane := store.KeyLane(key)
	if !ok || !r.lanes.holds(lane) {
		return s, false
	}
	s.ID, s.Lane = e.ID, lane
	s.SetKey(key)
	return s, true
}

// place says where an event stands that failed.
func (r *Queue) place(s *store.RetryState, e redisconn.Entry) {
	key, _ := r.cfg.Key(e)
	s.ID = e.ID
	s.SetKey(key)
	switch r.order() {
	case OrderKey:
		s.Lane = store.KeyLane(key)
	case OrderNone:
		s.Lane = "i" + e.ID
	}
}

// suspected is the state of an event whose first attempt nobody has lived to
// report.
func (r *Queue) suspected(e redisconn.Entry) store.RetryState {
	r.cfg.Log.Warn("event parked: its worker died or lost the partition while it was processed, or before its ack was sent; it runs alone next", "event", r.name(e.ID), "attempt", max(r.cfg.Deaths, 1))
	s := r.deadly(e)
	s.At = s.Last + r.wait(&Failure{}, s.Attempts)
	r.place(&s, e)
	return s
}

// deadly is the same of one at which as many owners ended as it has attempts, without
// what the record would tell.
func (r *Queue) deadly(e redisconn.Entry) store.RetryState {
	now := r.cfg.Store.Now()
	key, _ := e.Values[store.KeyField].(string)
	return store.RetryState{
		ID: e.ID, Key: key, Attempts: max(r.cfg.Deaths, 1), First: now, Last: now, Error: crashText, Reason: ReasonCrash,
	}
}

// Fail decides about events that failed: all of what runs, or new ones in their
// order. It returns the IDs of those to ack. ctx is for the log.
func (r *Queue) Fail(ctx context.Context, failures []Failure) (acks []string, err error) {
	var ps []store.Parking
	for i := range failures {
		f := &failures[i]
		if r.Runs(f.Entry.ID) {
			return nil, r.failedAgain(ctx, f)
		}
		now := r.cfg.Store.Now()
		s := store.RetryState{Attempts: 1, First: now, Last: now, Error: ErrorText(f.Err), Reason: f.Reason}
		r.place(&s, f.Entry)
		switch {
		case f.Verdict == Drop:
			r.dropped(ctx, f)
			acks = append(acks, f.Entry.ID)
		case f.Verdict == Dead || r.cfg.Retry.Max <= 1:
			if err := r.bury(ctx, f.Entry, s); err != nil {
				return acks, err
			}
		default:
			wait := r.wait(f, 1)
			s.At = now + wait
			r.postponed(ctx, f, 1, wait)
			ps = append(ps, store.Parking{Entry: f.Entry, State: s})
		}
	}
	return acks, r.park(ps)
}

// failedAgain decides about the running event.
func (r *Queue) failedAgain(ctx context.Context, f *Failure) error {
	s := *r.running
	r.running = nil
	s.Running, s.Last, s.Error, s.Reason = false, r.cfg.Store.Now(), ErrorText(f.Err), f.Reason
	switch {
	case f.Verdict == Drop:
		r.dropped(ctx, f)
		return r.settle(s.ID)
	case f.Verdict == Dead || s.Counted() >= r.cfg.Retry.Max:
		return r.bury(ctx, r.payload, s)
	}
	wait := r.wait(f, s.Counted())
	s.At = s.Last + wait
	r.postponed(ctx, f, s.Counted(), wait)
	return r.write(s)
}

// bury makes a dead letter of an event, parked or not.
func (r *Queue) bury(ctx context.Context, e redisconn.Entry, s store.RetryState) error {
	key := s.Key
	if s.Sum != "" { // that is not all of it
		if whole, ok := r.cfg.Key(e); ok {
			key = whole
		}
	}
	err := r.cfg.Store.DeadLetter(store.DeadLetter{
		Entry: e, Partition: r.cfg.Partition, Key: key, Attempts: s.Counted(), First: time.UnixMilli(s.First), Last: time.UnixMilli(s.Last),
		Error: s.Error, Reason: s.Reason, Epoch: r.cfg.Epoch, Begun: s.Attempts,
	})
	if err != nil {
		return err
	}
	r.lanes.remove(s.ID)
	r.cfg.Counts.Dead.Add(1)
	r.cfg.Log.ErrorContext(ctx, "event is a dead letter now", "event", r.name(s.ID), "attempt", s.Counted(), "kind", s.Reason, "err", s.Error)
	return nil
}

// park moves events to the store, or keeps them where it has no room: then no new event
// begins until they are parked.
func (r *Queue) park(ps []store.Parking) error {
	if len(ps) == 0 {
		return nil
	}
	waited := len(r.backlog) > 0 || r.Room() == 0
	r.backlog = append(r.backlog, ps...)
	err := r.drain()
	if err == nil && (len(r.backlog) > 0 || r.Room() == 0) && !waited {
		r.cfg.Log.Warn("partition blocked", "events", r.lanes.len(), "err", errFull)
	}
	return err
}

// drain parks what could not be parked before.
func (r *Queue) drain() error {
	for len(r.backlog) > 0 {
		room := r.Room()
		if room == 0 || r.full > r.cfg.Store.Now() {
			return nil
		}
		ps := r.backlog[:min(len(r.backlog), room, MaxPark)]
		err := r.cfg.Store.Park(ps)
		if errors.Is(err, store.ErrFull) {
			r.full = r.cfg.Store.Now() + fullPause.Milliseconds()
			return nil
		}
		if err != nil {
			return err
		}
		for _, p := range ps {
			r.lanes.put(p.State)
		}
		r.cfg.Counts.Parked.Add(int64(len(ps)))
		r.backlog = r.backlog[len(ps):]
	}
	r.backlog = nil
	return nil
}

func (r *Queue) postponed(ctx context.Context, f *Failure, attempts int, wait int64) {
	r.cfg.Counts.Retried.Add(1)
	r.cfg.Log.WarnContext(ctx, "attempt failed, another one follows", "event", r.name(f.Entry.ID), "attempt", attempts, "after", millis(wait), "err", f.Err)
}

func (r *Queue) dropped(ctx context.Context, f *Failure) {
	r.cfg.Counts.Dropped.Add(1)
	r.cfg.Log.WarnContext(ctx, "event dropped: the function said so", "event", r.name(f.Entry.ID), "err", f.Err)
}

// name is what an event is called in the log.
func (r *Queue) name(id string) string { return entryid.EventID(r.cfg.Partition, id) }

func (r *Queue) skipped(id string) {
	r.cfg.Counts.Skipped.Add(1)
	r.cfg.Log.Warn("event skipped: an operator said so", "event", r.name(id))
}
