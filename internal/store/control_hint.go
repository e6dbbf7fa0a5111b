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

// A Hint is a control message of other things than the membership. It only saves time: an
// executor that misses it learns the same with the next refresh.
type Hint struct {
	Kind      string
	Partition int
}

// Hint appends a hint to a processor's control stream.
func (c Control) Hint(ctx context.Context, stream, processor string, h Hint) error {
	one := c.hintCall(ctx, stream, processor, h)
	redisconn.Pipeline(ctx, c.NoRetry, []*redisconn.Call{one})
	if err := one.Reply.Err(); err != nil {
		return fmt.Errorf("stream %s: processor %s: hint: %w", stream, processor, classify(err))
	}
	return nil
}

func (c Control) hintCall(ctx context.Context, stream, processor string, h Hint) *redisconn.Call {
	return redisconn.PlainCall(ctx, "XADD", c.keys.Control(stream, processor), "MAXLEN", "~", controlLength, "*",
		"v", controlVersion, "kind", h.Kind, "partition", h.Partition)
}

// ParseHint parses an entry of a control stream; ok is false for an entry that is not a
// hint, which ParseControl parses.
func ParseHint(e redisconn.Entry) (h Hint, ok bool) {
	text := func(field string) string { return textOf(e.Values, field) }
	h.Kind = text("kind")
	if text("v") != controlVersion || !hintKinds[h.Kind] {
		return Hint{}, false
	}
	var err error
	h.Partition, err = strconv.Atoi(text("partition"))
	return h, err == nil
}

// NotifyOwner tells the owner of a partition that an operator changed something about its
// parked events or its quarantine, as well as it can. The owner learns that from
// LeaseResult.OperatorVersion, too.
func (c Control) NotifyOwner(ctx context.Context, p Partition) {
	_ = c.Hint(ctx, p.Stream, p.Processor, Hint{Kind: HintPoke, Partition: p.Number})
}

// announceDue tells the workers that own these partitions that an event is due
// earlier than any before. It is a hint: one that gets lost is made up for by the next
// refresh. So it goes to the processors that were known lately: each owner of the partition
// moves what is due, for all of them. It takes one round trip, however many partitions
// there are, and one more for a stream that had no processor when its metadata was read.
func (c Control) announceDue(ctx context.Context, ps ...StreamPartition) {
	metas := map[string]Meta{}
	var calls []*redisconn.Call
	for _, p := range ps {
		m, known := metas[p.Stream]
		if !known {
			if m, _ = MetaStore(c).recentMeta(ctx, p.Stream); len(m.Processors) == 0 {
				m, _, _ = MetaStore(c).LoadMeta(ctx, p.Stream) // one may have been registered a moment ago
			}
			metas[p.Stream] = m
		}
		for _, processor := range m.Processors {
			calls = append(calls, c.hintCall(ctx, p.Stream, processor, Hint{Kind: HintDue, Partition: p.Partition}))
		}
	}
	redisconn.Pipeline(ctx, c.NoRetry, calls)
}
