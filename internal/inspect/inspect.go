// Package inspect is a read-only view of an app: its streams and processors, their members, and the
// owner and lag of each partition. It changes nothing in Redis, not even the TTL of a heartbeat.
//
// The parts are read one after the other, so a change may show in one part and not yet in another.
// The state of one partition is of one moment.
package inspect

import (
	"cmp"
	"context"
	"fmt"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/rebalance"
)

// CountAtMost is the default number of entries of a partition that are counted one by one, if the
// server does not know how many are undelivered.
const CountAtMost = 10_000

// App looks at the named stream of an app, or at all streams if only is "". A stream without
// metadata is skipped. Errors of single parts are in Unreadable, in LeaderErr, MembersErr or in the
// Err of a partition. count bounds how many entries of a partition are counted one by one, 0 for
// CountAtMost.
func App(ctx context.Context, c *store.Client, only string, count int64) (*AppState, error) {
	return newLook(c, count).app(ctx, only)
}

// Stream looks at one stream and its processors; nil without metadata. count is as for App.
func Stream(ctx context.Context, c *store.Client, stream string, count int64) (*StreamState, error) {
	l := newLook(c, count)
	if err := l.prepare(ctx, []string{stream}); err != nil {
		return nil, err
	}
	return l.stream(ctx, stream)
}

// Processor looks at one processor of a stream that has metadata. count is as for App.
func Processor(ctx context.Context, c *store.Client, stream, processor string, count int64) (*ProcessorState, error) {
	l := newLook(c, count)
	if err := l.read(ctx, c.Keys().Meta(stream), c.Keys().Membership(stream, processor)); err != nil {
		return nil, err
	}
	m, ok, err := l.meta(stream)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("stream %s: no metadata", stream)
	}
	if err := l.read(ctx, l.beats(stream, processor)...); err != nil {
		return nil, err
	}
	seen, err := Places(ctx, c, c.Partitions(stream, processor, m.Numbers()), l.count)
	if err != nil {
		return nil, err
	}
	return l.processor(ctx, stream, processor, m, seen)
}

// Members returns a processor's membership, and its members with their heartbeats.
func Members(ctx context.Context, c *store.Client, stream, processor string) (rebalance.Group, []MemberState, error) {
	l := newLook(c, 0)
	if err := l.read(ctx, c.Keys().Membership(stream, processor)); err != nil {
		return rebalance.Group{}, nil, err
	}
	if err := l.read(ctx, l.beats(stream, processor)...); err != nil {
		return rebalance.Group{}, nil, err
	}
	return l.members(stream, processor)
}

// Places looks at partitions as processors see them, and does not name the workers. It takes one
// round trip for 1024 partitions of one processor, unless entries must be counted; more processors
// cost little more. count is as for App.
func Places(ctx context.Context, c *store.Client, places []store.Partition, count int64) ([]PartitionState, error) {
	count = cmp.Or(count, CountAtMost)
	views, err := c.Views(ctx, places)
	if err != nil {
		return nil, err
	}
	out := make([]PartitionState, 0, len(views))
	for i, v := range views {
		s := PartitionState{
			Partition: places[i].Number, Executor: v.Owner, LockLeft: v.LockLeft.Milliseconds(),
			Epoch: v.Epoch, Tenure: v.Tenure, Group: v.Group, Pending: v.Pending, Lag: v.Behind,
			Length: v.Length, Appended: v.Added, Floor: v.Floor, End: v.End, Oldest: v.Oldest, Delayed: v.Delayed,
			Parked: v.Parked, Retrying: v.Failed, Dead: v.Dead, Lost: v.Lost, Quarantine: quarantineOf(places[i].Number, v.Quarantine), Halt: quarantineOf(places[i].Number, v.Halt), Forgotten: forgottenOf(v.Forgotten),
		}
		if v.Oldest != "" {
			// An ID of the future comes from a producer or server whose clock is ahead.
			s.Age = max(v.Now.Sub(entryid.Time(v.Oldest)), 0).Milliseconds()
		}
		switch {
		case v.Err != nil:
			s.Err = v.Err.Error()
		case v.Behind < 0:
			if s.Lag, s.LagMore, err = c.CountBehind(ctx, places[i], v.Delivered, count); err != nil {
				return nil, err
			}
		}
		s.Lag += max(s.Pending, 0)
		out = append(out, s)
	}
	return out, nil
}

func forgottenOf(f *store.Forgotten) *ForgottenState {
	if f == nil {
		return nil
	}
	return &ForgottenState{What: f.What, From: f.From, To: f.To, At: entryid.MomentOf(f.At), Text: f.Error()}
}

// Evictions returns the servers that may evict keys. App does not call it: not every look needs it.
func Evictions(ctx context.Context, c *store.Client) (out []EvictionState, err error) {
	all, err := c.Evictions(ctx)
	for _, e := range all {
		if !e.Forbidden() {
			out = append(out, EvictionState{e.Addr, e.Policy, e.Limit, e.Evicted, e.Error()})
		}
	}
	return out, err
}

func quarantineOf(partition int, q *store.Quarantine) *QuarantineState {
	if q == nil {
		return nil
	}
	return &QuarantineState{Reason: q.Reason, Event: entryid.EventID(partition, q.Event), Worker: q.Worker, At: entryid.MomentOf(q.At)}
}
