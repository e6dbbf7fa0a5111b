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

// A checkpoint is the committed position that heartbeats have stored.
type checkpoint struct {
	committed string // that Redis has confirmed, "" where a request before may still be under way
	calm      bool   // no request of this ownership is under way, as far as is known
	reported  bool   // that it went back
}

// wentBack checks whether Redis holds a committed position below the one it has confirmed, as after
// a quick restart with an older copy, which the lock may outlive. calm reports whether the request
// before this one was confirmed too, so that no request under way can set the position back.
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

// askForgotten finds out whether Redis has forgotten something of lost partitions. Only the
// executor that lost a partition can tell: the next owner trusts the stored state.
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

// forgot counts and logs what Redis has forgotten of a partition, unless f is nil.
func (m *member) forgot(partition int, f *store.Forgotten) {
	if f != nil {
		m.count.Forgotten.Add(1)
		m.logBatch.note(slog.LevelError, gone, partition, f)
	}
}
