package retryqueue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/verdict"
)

// Sift removes the entries that may not be processed now: an event that may have ended the previous
// owner; one to skip; events of keys with parked events, which are parked behind these; and events
// set aside before, which are delivered again if an earlier one was not acked, or the position was
// reset. It returns the others, in the same memory, and the IDs to ack.
func (r *Queue) Sift(entries []redisconn.Entry) (rest []redisconn.Entry, acks []string, err error) {
	if r.lanes.len() == 0 && !r.wanted.any() {
		return entries, nil, nil
	}
	keyed := r.lanes.len() > 0 && r.cfg.Retry.order() != OrderNone
	rest = entries[:0]
	var ps []store.Parking
	for _, e := range entries {
		switch {
		case e.ID == r.wanted.skip:
			r.wanted.skip = ""
			r.report.skipped(e.ID)
			acks = append(acks, e.ID)
		case r.lanes.of[e.ID] != nil || slices.Contains(r.wanted.setAside, e.ID):
			acks = append(acks, e.ID)
		case e.ID == r.wanted.suspect:
			r.wanted.suspect = ""
			if r.cfg.Deaths >= max(r.cfg.Retry.Max, 2) { // finding its key may be what crashes a worker
				if err := r.bury(context.Background(), e, r.cfg.deadly(e)); err != nil {
					return rest, acks, err
				}
				break
			}
			r.report.suspected(e.ID, max(r.cfg.Deaths, 1))
			s := r.cfg.deadly(e)
			s.At = s.Last + r.cfg.Retry.after(&Failure{}, s.Attempts)
			r.cfg.place(&s, e)
			ps = append(ps, store.Parking{Entry: e, State: s})
		default:
			if state, ok := r.behind(e, keyed); ok {
				ps = append(ps, store.Parking{Entry: e, State: state})
			} else {
				rest = append(rest, e)
			}
		}
		r.wanted.pass(e.ID)
	}
	return rest, acks, r.park(ps)
}

// behind returns the state of an event that must wait in a lane before its first attempt,
// or false if it need not wait.
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

// Fail decides about events that failed: the running event, or new ones in their order.
// It returns the IDs to ack. ctx is for the log.
func (r *Queue) Fail(ctx context.Context, failures []Failure) (acks []string, err error) {
	var ps []store.Parking
	for i := range failures {
		f := &failures[i]
		if r.Runs(f.Entry.ID) {
			return nil, r.failedAgain(ctx, f)
		}
		now := r.cfg.Store.Now()
		s := store.RetryState{Attempts: 1, First: now, Last: now, Error: ErrorText(f.Err), Reason: f.Reason}
		r.cfg.place(&s, f.Entry)
		switch {
		case f.Verdict == verdict.Drop:
			r.report.dropped(ctx, f)
			acks = append(acks, f.Entry.ID)
		case f.Verdict == verdict.Dead || r.cfg.Retry.Max <= 1:
			if err := r.bury(ctx, f.Entry, s); err != nil {
				return acks, err
			}
		default:
			wait := r.cfg.Retry.after(f, 1)
			s.At = now + wait
			r.report.postponed(ctx, f, 1, wait)
			ps = append(ps, store.Parking{Entry: f.Entry, State: s})
		}
	}
	return acks, r.park(ps)
}

func (r *Queue) failedAgain(ctx context.Context, f *Failure) error {
	s := *r.running
	r.running = nil
	s.Running, s.Last, s.Error, s.Reason = false, r.cfg.Store.Now(), ErrorText(f.Err), f.Reason
	switch {
	case f.Verdict == verdict.Drop:
		r.report.dropped(ctx, f)
		return r.lanes.drop(s.ID)
	case f.Verdict == verdict.Dead || s.Counted() >= r.cfg.Retry.Max:
		return r.bury(ctx, r.payload, s)
	}
	wait := r.cfg.Retry.after(f, s.Counted())
	s.At = s.Last + wait
	r.report.postponed(ctx, f, s.Counted(), wait)
	return r.lanes.write(s)
}

func (r *Queue) bury(ctx context.Context, e redisconn.Entry, s store.RetryState) error {
	key := s.Key
	if s.Sum != "" { // incomplete
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
	r.report.dead(ctx, &s)
	return nil
}

// park moves events to the store, or keeps them in the backlog if the store is full: then
// no new event begins until they are parked.
func (r *Queue) park(ps []store.Parking) error {
	if len(ps) == 0 {
		return nil
	}
	waited := len(r.backlog) > 0 || r.Room() == 0
	r.backlog = append(r.backlog, ps...)
	err := r.drain()
	if err == nil && (len(r.backlog) > 0 || r.Room() == 0) && !waited {
		r.report.blocked(r.lanes.len())
	}
	return err
}

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
