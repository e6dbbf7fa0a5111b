package worker

import (
	"context"
	"errors"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/retryqueue"
	"github.com/runnel-go/runnel/internal/rows"
	"github.com/runnel-go/runnel/internal/store"
)

// Quarantine is Source.Quarantine. It is stored before the partition can move, so
// that it holds for every later owner.
func (s *partitionSource) Quarantine(ctx context.Context, event string, err error) {
	s.timing.endNow()
	s.p.leave()
	s.turn.yield()
	s.p.count.Quarantined.Add(1)
	s.p.log.ErrorContext(ctx, "partition quarantined", "event", entryid.EventID(s.p.keys.Number, event), "err", err, "help", help.Quarantine)
	// An error means that the ownership was lost: the next owner gets the same event.
	if s.deaths.decided(event) { // after its release the event is tried again
		_ = s.parked.beginSuspect("")
	}
	_ = s.parked.quarantine(s.parked.failure(event, err))
	s.standStill()
}

// standStill waits until the ownership ends. When the quarantine is over, it ends the ownership
// itself, and the partition is taken over again from the same position.
func (s *partitionSource) standStill() {
	for {
		select {
		case <-s.p.life.ending:
			return
		case <-s.notified:
		}
		if s.parked.resumed() {
			s.p.log.Info("quarantine released")
			s.p.host.retake(s.p)
			<-s.p.life.ending
			return
		}
	}
}

// notify notes that an operator changed something about the partition. Any goroutine may call it.
func (s *partitionSource) notify() {
	s.stale.Or(operatorsChange)
	s.notified.set()
	s.p.buffer.Interrupt()
}

// failure returns the stored form of an event that stopped the partition or the worker.
func (s *redisStore) failure(event string, err error) store.Quarantine {
	q := store.Quarantine{Reason: retryqueue.ErrorText(err), Event: event, Worker: s.i.w.name, At: s.Now()}
	if end := (*rows.EndError)(nil); event == "" && errors.As(err, &end) {
		q.Ending = end.Name()
	}
	return q
}

func (s *redisStore) quarantine(q store.Quarantine) error {
	return s.persist(func(ctx context.Context) error {
		return s.i.w.client.Quarantine(ctx, s.t.keys, s.t.claim, q)
	})
}

func (s *redisStore) resumed() (gone bool) {
	err := s.persist(func(ctx context.Context) error {
		q, err := s.i.w.client.Quarantined(ctx, s.t.keys)
		gone = q == nil
		return err
	})
	return err == nil && gone
}
