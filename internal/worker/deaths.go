package worker

import (
	"context"
	"fmt"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/store"
)

// deathsDecide is the number of deaths in a row after which an event without a Retry has failed.
const deathsDecide = 3

// deaths is the state of the event at which earlier owners ended. One goroutine uses it.
type deaths struct {
	attempts int    // of a Retry; 0: there is none
	event    string // its ID, "" for none, or once it is passed
	n        int    // number of owners in a row that ended at it; the first is a guess
	begun    bool   // the begin by this owner is stored
}

// meet prepares for the next entry, also if only its key is read, which may end the process as
// well. ok is false if the entry may not begin yet. An error means that the ownership has ended.
func (s *partitionSource) meet(id string) (ok bool, err error) {
	d := &s.deaths
	if d.event != "" && entryid.Compare(id, d.event) > 0 {
		d.event = ""
	}
	switch {
	case d.event != id || d.decided(id) && d.attempts > 0:
	case d.n+1 >= d.most() && !s.turn.claim(isolationExclusive):
		return false, nil
	case !d.begun:
		if err := s.parked.beginSuspect(id); err != nil {
			return false, err
		}
		d.begun = true
		if d.n > 1 {
			s.p.log.Error("event ended its workers", "event", entryid.EventID(s.p.keys.Number, id), "attempt", d.n, "help", help.EventEndsWorkers)
			s.parked.halted(&EventError{Stream: s.p.keys.Stream, Processor: s.p.keys.Processor, Partition: s.p.keys.Number, ID: id, Err: d.err()})
		}
	}
	return true, nil
}

// most returns the number of deaths after which an event has failed: with a Retry, its attempts.
// The last attempt runs alone. The first death, a guess, never decides.
func (d *deaths) most() int {
	if d.attempts > 0 {
		return max(d.attempts, 2)
	}
	return deathsDecide
}

// decided reports whether an event has ended as many owners as it may.
func (d *deaths) decided(id string) bool { return d.event == id && d.n >= d.most() }

func (d *deaths) err() error {
	return fmt.Errorf("the worker died or lost the partition %d times in a row while it processed this event", d.n)
}

// survived stores, while a commit is held, that what it is of was processed: an owner that ends now does not end at that.
func (s *redisStore) survived(suspect, committed string, waits *store.RetryState) {
	if waits != nil {
		_, _ = s.Write(*waits) // if the commit comes first, the event is gone
	}
	if suspect != "" && entryid.Compare(suspect, committed) <= 0 {
		_ = s.beginSuspect("")
	}
}

func (s *redisStore) beginSuspect(id string) error {
	return s.persist(func(ctx context.Context) error {
		return s.i.w.client.BeginSuspect(ctx, s.t.keys, s.t.claim, id)
	})
}
