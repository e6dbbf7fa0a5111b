package worker

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/prefetch"
	"github.com/runnel-go/runnel/internal/store"
)

// recover takes a partition over again if entries are no longer pending although they are not
// acked, as after XGROUP DELCONSUMER: they would be lost if this process died. An entry that
// waits in the buffer before and after a refresh was pending at the time of the refresh. An
// entry with the consumer may have been moved by a script whose reply is under way, so two
// refreshes have to agree.
func (h *heartbeat) recover(ctx context.Context, p *partition, before prefetch.Owed, r store.LeaseResult) error {
	missing := func(id string) bool {
		return id != "" && (r.Pending == 0 || entryid.Compare(id, r.Lowest) < 0)
	}
	now, known := p.buffer.Owed(), p.beat.missing
	p.beat.missing = ""
	id := ""
	switch {
	case now.Waiting == before.Waiting && missing(now.Waiting):
		id = now.Waiting
	case now.Taken == before.Taken && missing(now.Taken):
		p.beat.missing = now.Taken
		if known == now.Taken {
			id = now.Taken
		}
	}
	if id == "" || p.life.isEnding() || p.life.retaken.Load() {
		return nil
	}
	ids, err := h.m.w.client.PendingBelow(ctx, p.keys, h.m.group, id, forgottenAtOnce)
	if err != nil || len(ids) == forgottenAtOnce || slices.Contains(ids, id) {
		return err // the embedded server leaves what was deleted out of the lowest
	}
	// Without the group the next takeover goes back to the committed position.
	if err := h.m.w.client.DestroyGroup(ctx, p.keys, h.m.group); err != nil {
		return err
	}
	h.m.logBatch.note(slog.LevelError, unassigned, p.keys.Number, fmt.Errorf("event %s", id))
	h.m.releases.regain(p, store.GroupGone)
	return nil
}
