package store

import (
	"context"
	"fmt"
	"strconv"

	"github.com/runnel-go/runnel/internal/redisconn"
)

// HintPoke is the kind of a hint that an operator changed something of a
// partition: its parked events or its quarantine.
const HintPoke = "poke"

// HintDue is the kind of a hint that a delayed event of a partition is due earlier
// than all before.
const HintDue = "due"

// hintKinds are the kinds of hints; the other kinds of control messages are the
// membership's.
var hintKinds = map[string]bool{HintPoke: true, HintDue: true}

// A Hint is a control message of other things than the membership. It only saves
// time: whoever misses it learns the same with the next refresh.
type Hint struct {
	Kind      string
	Partition int
}

// Hint appends a hint to a processor's control stream.
func (c *Client) Hint(ctx context.Context, stream, processor string, h Hint) error {
	one := c.hintCall(ctx, stream, processor, h)
	redisconn.Pipeline(ctx, c.NoRetry, []*redisconn.Call{one})
	if err := one.Reply.Err(); err != nil {
		return fmt.Errorf("stream %s: processor %s: hint: %w", stream, processor, classify(err))
	}
	return nil
}

func (c *Client) hintCall(ctx context.Context, stream, processor string, h Hint) *redisconn.Call {
	return redisconn.PlainCall(ctx, "XADD", c.keys.Control(stream, processor), "MAXLEN", "~", controlLength, "*",
		"v", controlVersion, "kind", h.Kind, "partition", h.Partition)
}

// ParseHint reads an entry of a control stream; ok is false for one that is no
// hint, which is ParseControl's.
func ParseHint(e redisconn.Entry) (h Hint, ok bool) {
	text := func(field string) string { s, _ := e.Values[field].(string); return s }
	h.Kind = text("kind")
	if text("v") != controlVersion || !hintKinds[h.Kind] {
		return Hint{}, false
	}
	var err error
	h.Partition, err = strconv.Atoi(text("partition"))
	return h, err == nil
}

// notifyOwner tells the owner of a partition that an operator changed something, as well
// as it can.
func (c *Client) notifyOwner(ctx context.Context, p Partition) {
	_ = c.Hint(ctx, p.Stream, p.Processor, Hint{Kind: HintPoke, Partition: p.Number})
}
