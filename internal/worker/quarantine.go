package worker

import (
	"context"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/retryqueue"
	"github.com/runnel-go/runnel/internal/store"
)

// Quarantine is Source.Quarantine. It is stored before the partition can move, so
// that it holds for every later owner.
func (t *tenure) Quarantine(ctx context.Context, event string, err error) {
	t.timed()
	t.leave()
	t.yield()
	t.count.Quarantined.Add(1)
	t.log.ErrorContext(ctx, "partition quarantined: it stays owned and processes nothing, whoever owns it, until an operator ends that with `processor resume`; mend the cause first",
		"event", entryid.EventID(t.place.Partition, event), "err", err)
	// An error is the end of the tenure, by a loss: then the next owner meets the
	// same event.
	if t.Deadly(event) != nil { // after a resume it is tried again
		_ = t.shelf.beginSuspect("")
	}
	_ = t.shelf.quarantine(store.Quarantine{Reason: retryqueue.ErrorText(err), Event: event, Worker: t.worker, At: t.shelf.Now()})
	t.standStill()
}

// standStill waits until the tenure ends. It sees to it that it does when the
// quarantine is over: the partition is then taken over again, from where it stood.
func (t *tenure) standStill() {
	for {
		select {
		case <-t.ending:
			return
		case <-t.pokes:
		}
		if t.shelf.resumed() {
			t.log.Info("partition resumed by an operator")
			t.retake()
			<-t.ending
			return
		}
	}
}

// poke tells that an operator changed something about the partition.
func (t *tenure) poke() {
	t.stale.Store(true)
	select {
	case t.pokes <- struct{}{}:
	default:
	}
	t.buffer.Interrupt()
}

// quarantine stores it.
func (s *shelf) quarantine(q store.Quarantine) error {
	return s.persist(func(ctx context.Context) error {
		return s.i.w.client.Quarantine(ctx, s.t.place, s.t.number, q)
	})
}

// resumed reports whether the stored quarantine is gone.
func (s *shelf) resumed() (gone bool) {
	err := s.persist(func(ctx context.Context) error {
		q, err := s.i.w.client.Quarantined(ctx, s.t.place)
		gone = q == nil
		return err
	})
	return err == nil && gone
}
