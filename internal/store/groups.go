package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/runnel-go/runnel/internal/redisconn"
)

// A ForeignGroup is a consumer group of one partition that belongs to no registered processor. What
// it has not acked is never trimmed.
type ForeignGroup struct {
	Name      string
	Processor string // unregistered processor of Go whose owner has it, "" if the group is none of Go's
	Delivered string // last ID that was delivered to it
	Needs     string // first ID that it has not acked; entries from there on stay
	Pending   int64  // delivered, not acked
	Lag       int64  // not delivered; -1: the server does not know
}

// ForeignGroups returns, for each partition of a stream, the consumer groups that belong to no
// registered processor. It changes nothing.
func (c Viewer) ForeignGroups(ctx context.Context, stream string, m Meta) ([][]ForeignGroup, error) {
	args := appendTexts([]any{ExecutorIDLength}, m.Processors)
	out := make([][]ForeignGroup, m.Partitions)
	calls := make([]*redisconn.Call, m.Partitions)
	for n := range calls {
		calls[n] = redisconn.ScriptCall(ctx, groupsScript, []string{c.keys.Partition(stream, n)}, args...)
	}
	redisconn.PipelineInTurns(ctx, c.Retrying, calls, inTurn(len(m.Processors)))
	for n, call := range calls {
		groups, err := parseGroups(call.Reply.Slice())
		if err = classify(err); errors.Is(err, redisconn.ErrWrongType) {
			continue // no groups; a view of the partition names the key
		}
		if err != nil {
			return nil, fmt.Errorf("stream %s partition %d: consumer groups: %w", stream, n, err)
		}
		out[n] = groups
	}
	return out, nil
}

func parseGroups(reply []any, err error) ([]ForeignGroup, error) {
	var out []ForeignGroup
	for _, one := range reply {
		values, _ := one.([]any)
		var g ForeignGroup
		if err := scan(values, &g.Name, &g.Processor, &g.Delivered, &g.Needs, &g.Pending, &g.Lag); err != nil {
			return nil, err
		}
		out = append(out, g)
	}
	return out, err
}

// DropGroup destroys a consumer group in all partitions of a stream, so that what only it had not
// acked may be trimmed. It may be repeated.
func (c Operator) DropGroup(ctx context.Context, stream string, partitions int, group string) error {
	return c.onEach(ctx, stream, partitions, "destroy consumer group "+group, func(n int) *redisconn.Call {
		return redisconn.PlainCall(ctx, "XGROUP", "DESTROY", c.keys.Partition(stream, n), group)
	})
}
