package store

import (
	"context"
	"fmt"

	"github.com/runnel-go/runnel/internal/redisconn"
)

// A TrimRequest bounds one partition.
type TrimRequest struct {
	Log        string   // the partition's key
	Processors []string // every registered processor of the stream
	Size       int64    // the length that the partition may have
	Holders    string   // of a numbered log: the key of its holders, which keep entries, too
}

// Trimmed is the result of a TrimRequest.
type Trimmed struct {
	Removed   int64
	BlockedBy string // the registered processor without a consumer group, "" if each has one
}

// Trim removes the oldest entries of partitions that are longer than 7/8 of their Size, until 3/4
// of Size are left. It removes only entries that all registered processors and all other consumer
// groups have acked, so a partition whose processors keep up is never full and keeps some history.
// Without any group nothing is trimmed, but for a numbered log: what none of its holders needs. A plain group named like a registered processor is where
// Python's runnel stopped; it is ignored, as the processor has a position of its own. Trim takes
// one round trip, or several where streams have many processors.
func (c Owner) Trim(ctx context.Context, ts []TrimRequest) ([]Trimmed, error) {
	calls, groups := make([]*redisconn.Call, len(ts)), 0
	for i, t := range ts {
		groups = max(groups, len(t.Processors))
		args := appendTexts([]any{t.Size * 7 / 8, t.Size * 3 / 4, ExecutorIDLength}, t.Processors)
		if t.Holders == "" {
			calls[i] = redisconn.ScriptCall(ctx, trimScript, []string{t.Log}, args...)
		} else {
			calls[i] = redisconn.ScriptCall(ctx, heldTrimScript, []string{t.Log, t.Holders}, args...)
		}
	}
	redisconn.PipelineInTurns(ctx, c.NoRetry, calls, inTurn(groups))
	out := make([]Trimmed, len(ts))
	for i, t := range ts {
		reply, err := calls[i].Reply.Slice()
		if err != nil {
			return nil, fmt.Errorf("trim %s: %w", t.Log, classify(err))
		}
		if err := scan(reply, &out[i].Removed, &out[i].BlockedBy); err != nil {
			return nil, fmt.Errorf("trim %s: %w", t.Log, err)
		}
	}
	return out, nil
}
