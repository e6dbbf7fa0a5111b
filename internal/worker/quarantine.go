package worker

import (
	"context"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/retryqueue"
	"github.com/runnel-go/runnel/internal/store"
)

// Quarantine is Source.Quarantine. It is stored before the partition can move, so
// that it holds for every later owner.
func (p *partition) Quarantine(ctx context.Context, event string, err error) {
	p.timed()
	p.leave()
	p.yieldTurn()
	p.count.Quarantined.Add(1)
	p.log.ErrorContext(ctx, "partition quarantined", "event", entryid.EventID(p.keys.Number, event), "err", err, "help", help.Quarantine)
	// An error is the end of the ownership, by a loss: then the next owner meets the
	// same event.
	if p.decided(event) { // after a resume it is tried again
		_ = p.parked.beginSuspect("")
	}
	_ = p.parked.quarantine(p.parked.failure(event, err))
	p.standStill()
}

// standStill waits until the ownership ends. It sees to it that it does when the
// quarantine is over: the partition is then taken over again, from where it stood.
func (p *partition) standStill() {
	for {
		select {
		case <-p.life.ending:
			return
		case <-p.notified:
		}
		if p.parked.resumed() {
			p.log.Info("quarantine released")
			p.host.retake(p)
			<-p.life.ending
			return
		}
	}
}

// notify tells that an operator changed something about the partition.
func (p *partition) notify() {
	p.stale.Store(true)
	select {
	case p.notified <- struct{}{}:
	default:
	}
	p.buffer.Interrupt()
}

// failure is what is stored of an event that stopped something here.
func (s *redisStore) failure(event string, err error) store.Quarantine {
	return store.Quarantine{Reason: retryqueue.ErrorText(err), Event: event, Worker: s.i.w.name, At: s.Now()}
}

// quarantine stores it.
func (s *redisStore) quarantine(q store.Quarantine) error {
	return s.persist(func(ctx context.Context) error {
		return s.i.w.client.Quarantine(ctx, s.t.keys, s.t.claim, q)
	})
}

// resumed reports whether the stored quarantine is gone.
func (s *redisStore) resumed() (gone bool) {
	err := s.persist(func(ctx context.Context) error {
		q, err := s.i.w.client.Quarantined(ctx, s.t.keys)
		gone = q == nil
		return err
	})
	return err == nil && gone
}
