package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/runnel-go/runnel/internal/delayqueue"
	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// Bounds for moving delayed events: so many scripts of a round trip, one for each partition, share
// so many events and bytes, but each may move leastMoved events.
const (
	movesPerTrip  = 8
	eventsPerTrip = 1000
	bytesPerTrip  = 4 << 20
	leastMoved    = 16
)

// Fields that a delayed event has beside those that it was sent with.
const (
	SentField = "__sent" // when it was sent, in milliseconds since 1970 by Redis' clock
	DueField  = "__at"   // when it was due
)

// A Moved is the result of a Move for one partition.
type Moved struct {
	Events int64         // how many were moved
	Wait   time.Duration // until the next is due, negative if there is none
	Full   *FullError    // what keeps due events waiting for room, nil if none does
	Err    error         // what kept the first due event from being moved
}

// A StreamPartition is a partition and its due queue.
type StreamPartition struct {
	Stream    string
	Partition int
}

// A DelayedStore is the delayed events of the app's streams. Producer.Append adds to them, owners
// of partitions move what is due, inspect lists what waits, and cli and web cancel and fire it.
type DelayedStore struct{ *core }

// Move moves due events into their partitions, a bounded number of each. No event is moved early or
// twice, even if others move at the same time, so Move may be repeated. If a partition is full,
// Move makes room as Append does, but does not wait for any: whatever the overflow policy, due
// events are neither dropped nor refused.
func (c DelayedStore) Move(ctx context.Context, ps []StreamPartition) []Moved {
	out := make([]Moved, len(ps))
	var calls []*redisconn.Call
	var at []int
	share := max(len(ps), movesPerTrip)
	for i, p := range ps {
		m, err := MetaStore(c).recentMeta(ctx, p.Stream)
		if err != nil {
			out[i].Err = p.wrap(err)
			continue
		}
		calls = append(calls, redisconn.ScriptCall(ctx, moveScript, c.delayKeys(p.Stream, p.Partition), m.MaxLen,
			max(eventsPerTrip/share, leastMoved), max(bytesPerTrip/share, bytesPerTrip/eventsPerTrip*leastMoved)))
		at = append(at, i)
	}
	redisconn.PipelineInTurns(ctx, c.NoRetry, calls, movesPerTrip)
	var denied []*part
	full := map[*part]*Moved{}
	for n, i := range at {
		p, flat := ps[i], []any(nil)
		flat, err := calls[n].Reply.Slice()
		more := int64(0)
		if err == nil {
			out[i], more, err = parseMoved(flat)
		}
		if err != nil {
			out[i].Err = p.wrap(classify(c.NameWrongTypes(ctx, c.delayKeys(p.Stream, p.Partition), err)))
			continue
		}
		if more > 0 {
			d := &part{Append: &Append{Stream: p.Stream, Partition: p.Partition}, log: c.keys.Partition(p.Stream, p.Partition), need: int(min(more, recordsPerCall))}
			denied, full[d] = append(denied, d), &out[i]
		}
	}
	c.makeRoomFor(ctx, denied, full)
	return out
}

func (c DelayedStore) makeRoomFor(ctx context.Context, denied []*part, full map[*part]*Moved) {
	if len(denied) == 0 {
		return
	}
	for i, r := range Producer(c).room(ctx, denied) {
		m := full[denied[i]]
		switch {
		case r.err != nil:
			m.Err = StreamPartition{denied[i].Stream, denied[i].Partition}.wrap(r.err)
		case r.Length >= denied[i].meta.MaxLen && denied[i].meta.MaxLen > 0:
			m.Full = &r.FullError
		}
	}
}

func (p StreamPartition) wrap(err error) error {
	return fmt.Errorf("stream %s partition %d: move delayed events: %w", p.Stream, p.Partition, err)
}

func parseMoved(flat []any) (m Moved, denied int64, err error) {
	var wait int64
	var text string
	if err := scan(flat, &m.Events, &wait, &denied, &text); err != nil {
		return Moved{}, 0, err
	}
	if text != "" {
		err = redisconn.ScriptError(text)
	}
	m.Wait = time.Duration(wait) * time.Millisecond
	return m, denied, err
}

// headsCall asks when the next delayed event of each partition of a part is due.
func headsCall(ctx context.Context, rs []LeaseRequest, part []int) *redisconn.Call {
	keys := make([]string, len(part))
	for i, at := range part {
		keys[i] = rs[at].Partition.Due
	}
	return redisconn.ScriptCall(ctx, headsScript, keys)
}

// setDue fills in what headsCall found. It ignores an error, since Due is a hint.
func setDue(renewed []LeaseResult, heads *redisconn.Call) {
	waits, _ := heads.Reply.Int64Slice()
	for i, ms := range waits {
		if i < len(renewed) && ms >= 0 {
			renewed[i].Due = max(time.Duration(ms)*time.Millisecond, 1)
		}
	}
}

// queue returns the due queue of a partition.
func (c DelayedStore) queue(stream string, partition int) delayqueue.Queue {
	return delayqueue.New(c.NoRetry, c.dueKeys(stream, partition))
}

// Cancel removes a delayed event. It returns false if the event does not wait: it was moved into
// its partition, cancelled, or never there. A repetition returns false.
func (c DelayedStore) Cancel(ctx context.Context, stream string, partition int, id string) (bool, error) {
	waited, err := c.queue(stream, partition).Remove(ctx, id)
	return waited, delayedError(stream, partition, "cancel", id, err)
}

// Reschedule changes when a delayed event is due; the zero time is now. It returns false if the
// event does not wait. It may be repeated.
func (c DelayedStore) Reschedule(ctx context.Context, stream string, partition int, id string, at time.Time) (bool, error) {
	there, first, err := c.queue(stream, partition).Reschedule(ctx, id, at)
	if first {
		Control(c).announceDue(ctx, StreamPartition{stream, partition})
	}
	return there, delayedError(stream, partition, "reschedule", id, err)
}

// Fire makes a delayed event due now. It returns false if the event does not wait.
func (c DelayedStore) Fire(ctx context.Context, stream string, partition int, id string) (bool, error) {
	return c.Reschedule(ctx, stream, partition, id, time.Time{})
}

// A DelayedEvent is one that waits for its time.
type DelayedEvent struct {
	ID     string         // in the due queue of its partition
	At     time.Time      // when it is due
	Sent   time.Time      // when it was sent
	Values map[string]any // as its entry will have them, but for DueField
}

// Delayed returns at most n delayed events of a partition by due time, beginning with number from.
// It changes nothing.
func (c DelayedStore) Delayed(ctx context.Context, stream string, partition, from, n int) ([]DelayedEvent, error) {
	entries, err := c.queue(stream, partition).List(ctx, from, n)
	if err != nil {
		return nil, delayedError(stream, partition, "list", "", err)
	}
	out := make([]DelayedEvent, len(entries))
	for i, e := range entries {
		values, err := unpack(e.Data)
		if err != nil {
			return nil, delayedError(stream, partition, "read", e.ID, err)
		}
		ms, _ := strconv.ParseInt(textOf(values, SentField), 10, 64) // written by delay.lua
		out[i] = DelayedEvent{ID: e.ID, At: e.At, Sent: entryid.MomentOf(ms), Values: values}
	}
	return out, nil
}

// CountDelayed returns the number of delayed events in each partition of a stream. With
// ErrWrongType, the other partitions were counted all the same.
func (c DelayedStore) CountDelayed(ctx context.Context, stream string, partitions int) ([]int64, error) {
	calls := make([]*redisconn.Call, partitions)
	for i := range calls {
		calls[i] = redisconn.PlainCall(ctx, "ZCARD", c.dueKeys(stream, i).Due)
	}
	redisconn.Pipeline(ctx, c.Retrying, calls)
	out := make([]int64, partitions)
	var wrong error
	for i, call := range calls {
		n, err := call.Reply.Int64()
		err = delayedError(stream, i, "count", "", err)
		if errors.Is(err, redisconn.ErrWrongType) {
			wrong = err
		} else if err != nil {
			return nil, err
		}
		out[i] = n
	}
	return out, wrong
}

func delayedError(stream string, partition int, op, id string, err error) error {
	if err == nil {
		return nil
	}
	what := "delayed events"
	if id != "" {
		what = "delayed event " + DelayedID(partition, id)
	}
	return fmt.Errorf("stream %s partition %d: %s %s: %w", stream, partition, op, what, classify(err))
}
