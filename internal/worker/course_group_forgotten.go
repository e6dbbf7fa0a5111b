package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/prefetch"
	"github.com/runnel-go/runnel/internal/store"
)

// forgottenAtOnce bounds one round of lost acks.
const forgottenAtOnce = 1000

// renewed finds entries that are pending though they were acked, and those that are not though they were
// not.
func (c byGroup) renewed(ctx context.Context, p *partition, sent store.LeaseRequest, before prefetch.Owed, r store.LeaseResult) error {
	return errors.Join(c.ackForgotten(ctx, p, r), c.recover(ctx, p, before, r))
}

// ackForgotten acks entries again that are pending although this owner has acked them. A
// failover to a replica that was behind brings such entries back, and no other owner acks them.
//
// A pending entry may be unknown here: Redis forgot that it was parked; or, while two servers
// were masters, it was appended with an ID that went back, and delivered in a reply that is
// late or lost. Then nothing is acked, and the partition is taken over again.
func (c byGroup) ackForgotten(ctx context.Context, p *partition, r store.LeaseResult) error {
	upTo, ok := p.buffer.PendingBelow(r.Lowest)
	if r.Pending == 0 || !ok || p.life.retaken.Load() {
		return nil
	}
	ids, err := c.m.w.client.PendingBelow(ctx, p.keys, c.m.group, upTo, forgottenAtOnce)
	if err != nil || len(ids) == 0 {
		return err
	}
	if !p.buffer.HasAcked(ids) {
		if !p.life.isEnding() {
			c.m.releases.repeat(p, fmt.Errorf("%s is pending, and not known to be done", ids[0]))
		}
		return nil
	}
	p.log.Info("forgotten acks sent again", "events", len(ids), "event", entryid.EventID(p.keys.Number, ids[0]))
	return c.m.w.client.Ack(ctx, c.m.group, []store.Ack{{Place: p.keys, IDs: ids}})[0]
}

// recover takes a partition over again if entries are no longer pending although they are not
// acked, as after XGROUP DELCONSUMER: they would be lost if this process died. An entry that
// waits in the buffer before and after a refresh was pending at the time of the refresh. An
// entry with the consumer may have been moved by a script whose reply is under way, or has just come: none is missed
// meanwhile, and two refreshes have to agree.
func (c byGroup) recover(ctx context.Context, p *partition, before prefetch.Owed, r store.LeaseResult) error {
	missing := func(id string) bool {
		return id != "" && (r.Pending == 0 || entryid.Compare(id, r.Lowest) < 0)
	}
	now, known := p.buffer.Owed(), p.beat.missing
	p.beat.missing = ""
	id := ""
	switch {
	case now.Waiting == before.Waiting && missing(now.Waiting):
		id = now.Waiting
	case now.Taken == before.Taken && missing(now.Taken) && !p.source.parked.moving.Load():
		p.beat.missing = now.Taken
		if known == now.Taken {
			id = now.Taken
		}
	}
	if id == "" || p.life.isEnding() || p.life.retaken.Load() {
		return nil
	}
	ids, err := c.m.w.client.PendingBelow(ctx, p.keys, c.m.group, id, forgottenAtOnce)
	if err != nil || len(ids) == forgottenAtOnce || slices.Contains(ids, id) {
		return err // the embedded server leaves what was deleted out of the lowest
	}
	// Without the group the next takeover goes back to the committed position. A group that was not given what is held is one that a
	// failover has set back: it tells more, since what was parked, or made a dead letter, since then is forgotten as well.
	last := p.buffer.Last()
	switch given, err := c.m.w.client.GroupRead(ctx, p.keys, c.m.group); {
	case err != nil:
		return err
	case given != "" && entryid.Compare(given, last) < 0:
		c.m.releases.repeat(p, fmt.Errorf("%s was delivered, and the group is at %s", last, given))
		return nil
	}
	if err := c.m.w.client.DestroyGroup(ctx, p.keys, c.m.group); err != nil {
		return err
	}
	c.m.logBatch.note(slog.LevelError, unassigned, p.keys.Number, fmt.Errorf("event %s", id))
	c.m.releases.regain(p, store.GroupGone)
	return nil
}
