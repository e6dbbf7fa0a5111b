package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/runnel-go/runnel/internal/redisconn"
)

// An Operator changes what is stored for a person: it removes processors and streams, resets
// positions, and retries, drops or replays events set aside. cli, web and internal/operate use it.
type Operator struct{ *core }

// Unregister removes a processor from a stream's metadata, so that nothing waits for it any more,
// and reports whether it was there.
func (c Operator) Unregister(ctx context.Context, stream, processor string) (bool, error) {
	return c.unlist(ctx, stream, processor, func(m *Meta) *[]string {
		m.Atomic = slices.DeleteFunc(m.Atomic, func(name string) bool { return name == processor })
		return &m.Processors
	})
}

// DropPart removes a part of an extension from a stream's metadata, and reports whether it was there.
// Delete the part's keys first: only its name tells of them.
func (c Operator) DropPart(ctx context.Context, stream, part string) (bool, error) {
	return c.unlist(ctx, stream, part, func(m *Meta) *[]string { return &m.Parts })
}

// unlist removes a name from one of the lists of a stream's metadata.
func (c Operator) unlist(ctx context.Context, stream, name string, of func(*Meta) *[]string) (bool, error) {
	return c.amendMeta(ctx, stream, func(m *Meta) bool {
		list := of(m)
		at := slices.Index(*list, name)
		if at >= 0 {
			*list = slices.Delete(*list, at, at+1)
		}
		return at >= 0
	})
}

// amendMeta stores what change makes of a stream's metadata, and reports whether it changed anything.
func (c Operator) amendMeta(ctx context.Context, stream string, change func(*Meta) bool) (bool, error) {
	for {
		stored, err := c.load(ctx, c.keys.Meta(stream))
		if err != nil || len(stored) == 0 {
			return false, MetaStore(c).metaError(stream, err)
		}
		m, err := parseMeta(stored)
		if err != nil {
			return false, MetaStore(c).metaError(stream, err)
		}
		if !change(&m) {
			return false, nil
		}
		value, err := json.Marshal(m)
		if err != nil {
			return false, MetaStore(c).metaError(stream, err)
		}
		swapped, err := c.swap(ctx, c.keys.Meta(stream), stored, value)
		if err != nil {
			return false, MetaStore(c).metaError(stream, err)
		}
		if swapped {
			c.metas.store(stream, m, MetaStore(c).refused(stream, m.Layout))
			return true, nil
		}
	}
}

// Forget removes what a processor left in a partition: consumer groups, position, parked
// events, rows of these tables, and with dead its dead letters. Forget returns ErrHeld, and
// removes nothing, if the partition has an owner, and ErrOutputs if the outbox that p names has something; one without a
// name is left alone. It may be repeated.
func (c Operator) Forget(ctx context.Context, p Partition, dead bool, tables ...Table) error {
	return c.forget(ctx, p, dead, "0", tables)
}

// LeaveToPython is Forget that leaves a plain consumer group at the processor's position, where
// Python's runnel goes on under the same name.
func (c Operator) LeaveToPython(ctx context.Context, p Partition, dead bool, tables ...Table) error {
	return c.forget(ctx, p, dead, "1", tables)
}

func (c Operator) forget(ctx context.Context, p Partition, dead bool, leave string, tables []Table) error {
	keys, boxed := []string{p.Log, p.Lock, p.Own, p.Parked, p.Retry}, 0
	if p.Outbox != "" {
		keys, boxed = append(keys, p.Outbox), 1
	}
	keys = appendTables(keys, tables)
	if dead {
		keys = append(keys, p.Dead)
	}
	return p.wrap("forget", persist(ctx, func() error {
		err := forgetScript.Run(ctx, c.NoRetry, keys, p.Processor, ExecutorIDLength, leave, boxed).Err()
		switch {
		case redisconn.ReplyHas(err, "HELD"):
			return errors.Join(ErrHeld, err)
		case redisconn.ReplyHas(err, "OUTPUTS"):
			return errors.Join(ErrOutputs, err)
		}
		return classify(err)
	}))
}

// onEach runs a command for each partition of a stream until one fails; a missing one does not.
func (c Operator) onEach(ctx context.Context, stream string, partitions int, op string, command func(n int) *redisconn.Call) error {
	for from := 0; from < partitions; from += partitionsPerTrip {
		calls := make([]*redisconn.Call, min(partitions-from, partitionsPerTrip))
		for i := range calls {
			calls[i] = command(from + i)
		}
		redisconn.Pipeline(ctx, c.Retrying, calls)
		for i, call := range calls {
			if err := call.Reply.Err(); err != nil && !redisconn.ReplyHas(err, "requires the key to exist") {
				return fmt.Errorf("stream %s partition %d: %s: %w", stream, from+i, op, classify(err))
			}
		}
	}
	return nil
}

// ForgetMembers removes the membership and the control stream of a processor without members.
func (c Operator) ForgetMembers(ctx context.Context, stream, processor string) error {
	err := c.Retrying.Del(ctx, c.keys.Membership(stream, processor), c.keys.Control(stream, processor)).Err()
	return Control(c).Group(stream, processor).wrap("forget", classify(err))
}
