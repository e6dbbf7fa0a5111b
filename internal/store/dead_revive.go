package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// Revive parks the event of a dead letter again, only for the processor that gave up on it, and
// removes the dead letter, in one step. The event is due at once, has no attempt behind it, and
// waits in the lane of its key. ok is false if there is no such dead letter. Revive returns
// ErrFull, and changes nothing, if limit events are parked. It needs no owner: the partition's
// current or next owner runs the event. It retries while its outcome is unknown and ctx lives, and
// may be repeated. It changes LeaseResult.OperatorVersion; NotifyOwner tells the owner sooner.
func (c Operator) Revive(ctx context.Context, p Partition, letter string, limit int64) (ok bool, err error) {
	ok, err = c.revive(ctx, p, letter, limit)
	if errors.Is(err, ErrFull) {
		err = fmt.Errorf("%w: %d events are parked, as many as MaxLen allows", ErrFull, limit)
	}
	return ok, p.wrap("retry dead letter "+entryid.EventID(p.Number, letter), err)
}

func (c Operator) revive(ctx context.Context, p Partition, letter string, limit int64) (ok bool, err error) {
	found, err := c.Retrying.XRange(ctx, p.Dead, letter, letter).Result()
	if err != nil || len(found) == 0 {
		return false, classify(err)
	}
	d, err := parseDead(found[0], p.Number)
	if err != nil {
		return false, err
	}
	if len(d.Entry.Values) == 0 || !isEntryID(d.Entry.ID) {
		return false, ErrNoEvent
	}
	state, err := revived(d).encode()
	if err != nil {
		return false, err
	}
	unknown := false
	err = persist(ctx, func() error {
		n, err := reviveScript.Run(ctx, c.NoRetry, []string{p.Dead, p.Parked, p.Retry, p.Own, p.Log},
			letter, d.Entry.ID, pack(flatten(d.Entry.Values)), state, max(limit, 0)).Int64()
		err = classify(err)
		ok = err == nil && (n == 1 || unknown)
		unknown = unknown || errors.Is(err, redisconn.ErrUnknownOutcome)
		return err
	})
	return ok, err
}

// revived returns the state of a dead letter's event that runs again. Its attempts count from 0,
// but are numbered from the time of the dead letter, above those of all its earlier lives: a late
// write of one of these undoes nothing; see attempt.lua and dead.lua. An event that ended its
// worker runs alone again.
func revived(d DeadLetter) RetryState {
	ms, _, _ := strings.Cut(d.ID, "-")
	n, _ := strconv.ParseInt(ms, 10, 53)
	s := RetryState{ID: d.Entry.ID, Lane: KeyLane(d.Key), Attempts: int(n), Void: int(n), Revived: true}
	s.SetKey(d.Key)
	if d.Reason == crashReason {
		s.Reason = crashReason
	}
	return s
}

// crashReason is the reason of a dead letter whose event ended its worker.
const crashReason = "crash"

func isEntryID(id string) bool {
	_, _, ok := entryid.ParseEventID(entryid.EventID(0, id))
	return ok
}
