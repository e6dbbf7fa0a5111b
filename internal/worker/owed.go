package worker

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/runnel-go/runnel/internal/entryid"

	"github.com/runnel-go/runnel/internal/store"
)

// owed are entries that a tenure was given and has not acked: the lowest that is with the
// consumer, and the lowest that waits for it. "" stands for none.
type owed struct{ taken, waiting string }

func (b *buffer) owed() owed {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return owed{}
	}
	return owed{firstOf(b.taken), b.headID()}
}

// recover takes a partition over again whose entries are not pending any more though
// they are not acked, as after XGROUP DELCONSUMER: they would be lost if this process
// died. What waits was pending at the time of the refresh, if it waits before and after
// it. What is with the consumer may have been moved by a script whose reply is under way,
// so that two refreshes have to agree.
func (i *incarnation) recover(ctx context.Context, t *tenure, before owed, r store.Renewed) error {
	missing := func(id string) bool {
		return id != "" && (r.Pending == 0 || entryid.Compare(id, r.Lowest) < 0)
	}
	now, known := t.owed(), t.missing
	t.missing = ""
	id := ""
	switch {
	case now.waiting == before.waiting && missing(now.waiting):
		id = now.waiting
	case now.taken == before.taken && missing(now.taken):
		t.missing = now.taken
		if known == now.taken {
			id = now.taken
		}
	}
	if id == "" || t.isEnding() || t.retaken.Load() {
		return nil
	}
	ids, err := i.w.client.Strays(ctx, t.place, i.group, id, straysAtOnce)
	if err != nil || len(ids) == straysAtOnce || slices.Contains(ids, id) {
		return err // the embedded server leaves what was deleted out of the lowest
	}
	// Without the group the next takeover goes back to the floor.
	if err := i.w.client.DestroyGroup(ctx, t.place, i.group); err != nil {
		return err
	}
	i.journal.note(slog.LevelError, unassigned, t.place.Partition, fmt.Errorf("event %s", id))
	i.regain(t, store.GroupGone)
	return nil
}
