package worker

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/redisconn"

	"github.com/runnel-go/runnel/internal/store"
)

// A checkpoint is what a heartbeat knows of the committed position that it has stored.
type checkpoint struct {
	committed string // that Redis has confirmed, "" where a request before may still be under way
	calm      bool   // no request of this ownership is under way, as far as is known
	reported  bool   // that it went back
}

// wentBack notes where Redis holds a committed position below the one that it has confirmed, as
// after a quick restart with an older copy, which the lock may outlive. calm says that the
// request before this one was confirmed too, so that no request under way sets the position
// back.
func (h *heartbeat) wentBack(p *partition, calm bool, sent store.LeaseRequest, r store.LeaseResult) {
	c, stored := &p.beat.stored, cmp.Or(r.Stored, "0-0")
	if c.committed != "" && entryid.Compare(stored, c.committed) < 0 && !c.reported {
		c.reported = true
		h.m.history.parts(store.Known{Place: p.keys, Group: h.m.group, Epoch: p.epoch, Given: c.committed, Back: stored})
	}
	c.calm, c.committed = true, ""
	if calm {
		c.committed = sent.Committed
	}
}

// askForgotten finds out whether Redis has forgotten what was known of partitions that were
// lost. Only the executor that lost a partition can tell: the next owner believes what is
// stored.
func (h *heartbeat) askForgotten(ctx context.Context) {
	known := h.m.history.toAsk()
	if len(known) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, h.m.p.Lease/3) // a heartbeat waits for it
	defer cancel()
	found, err := h.m.w.client.Forgotten(ctx, known)
	if err != nil {
		if redisconn.Unavailable(err) {
			h.m.history.parts(known...)
		} else {
			h.m.log.Warn("loss of events unknown", "member", h.m.id, "err", err, "help", help.EventsMayBeGone)
		}
		return
	}
	for n, f := range found {
		h.m.forgot(known[n].Place.Number, f)
	}
}

// forgot tells what Redis has forgotten of a partition, unless it is nothing.
func (m *member) forgot(partition int, f *store.Forgotten) {
	if f != nil {
		m.count.Forgotten.Add(1)
		m.logBatch.note(slog.LevelError, gone, partition, f)
	}
}
