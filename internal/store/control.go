package store

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/rebalance"
)

const (
	controlVersion = "1"
	controlLength  = 256 // messages kept, approximately
)

// Control carries a processor's membership and control stream. internal/worker uses it, and so does
// code that changes what the owner of a partition should notice soon.
type Control struct{ *core }

// Announce appends a message to the processor's control stream.
func (s *MembershipStore) Announce(ctx context.Context, m rebalance.Message) error {
	kind, err := m.Kind.MarshalText()
	if err == nil {
		err = classify(s.c.NoRetry.XAdd(ctx, &redis.XAddArgs{
			Stream: s.c.keys.Control(s.stream, s.processor),
			MaxLen: controlLength,
			Approx: true,
			Values: []any{"v", controlVersion, "kind", kind, "executor", m.Executor,
				"generation", m.Generation, "partition", m.Partition},
		}).Err())
	}
	return s.wrap("announce", err)
}

// ParseControl parses an entry of a control stream, and fails if it is no message of this version.
func ParseControl(e redisconn.Entry) (rebalance.Message, error) {
	var m rebalance.Message
	text := func(field string) string { return textOf(e.Values, field) }
	if v := text("v"); v != controlVersion {
		return m, fmt.Errorf("control message %s: version %q, not %s", e.ID, v, controlVersion)
	}
	err := m.Kind.UnmarshalText([]byte(text("kind")))
	if err == nil {
		m.Generation, err = strconv.ParseInt(text("generation"), 10, 64)
	}
	if err == nil {
		m.Partition, err = strconv.Atoi(text("partition"))
	}
	if err != nil {
		return rebalance.Message{}, fmt.Errorf("control message %s: %w", e.ID, err)
	}
	m.Executor = text("executor")
	return m, nil
}

// KindRules is the kind of the message that the rules have changed, in the app's control stream.
const KindRules = "rules"

// ControlKind returns the kind of a control message, "" if it is none of this version.
func ControlKind(e redisconn.Entry) string {
	if textOf(e.Values, "v") != controlVersion {
		return ""
	}
	return textOf(e.Values, "kind")
}

// ControlTail returns behind which control streams are read: the last ID of each, "0-0" if empty.
func (c Control) ControlTail(ctx context.Context, keys []string) ([]string, error) {
	calls := make([]*redisconn.Call, len(keys))
	for i, key := range keys {
		calls[i] = redisconn.PlainCall(ctx, "XREVRANGE", key, "+", "-", "COUNT", 1)
	}
	redisconn.Pipeline(ctx, c.Retrying, calls)
	ids := make([]string, len(keys))
	for i, call := range calls {
		entries, err := call.Reply.Slice()
		if err != nil {
			return nil, fmt.Errorf("control stream %s: %w", keys[i], classify(err))
		}
		ids[i] = "0-0"
		if len(entries) > 0 {
			if id, ok := firstString(entries[0]); ok {
				ids[i] = id
			}
		}
	}
	return ids, nil
}

func firstString(v any) (string, bool) {
	list, _ := v.([]any)
	if len(list) == 0 {
		return "", false
	}
	s, ok := list[0].(string)
	return s, ok
}
