package store

import (
	"context"
	"fmt"
	"strconv"

	"github.com/runnel-go/runnel/internal/redisconn"
)

// HintPoke is the kind of hint that an operator changed a partition's parked events or quarantine.
const HintPoke = "poke"

// HintDue is the kind of hint that a delayed event of a partition is due before all others.
const HintDue = "due"

// hintKinds are the kinds of hints; all other control messages are the membership's.
var hintKinds = map[string]bool{HintPoke: true, HintDue: true}

// A Hint is a control message about something other than the membership. It only saves time: an
// executor that misses it learns the same from the next refresh.
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

// ParseHint parses an entry of a control stream. ok is false if it is no hint; see ParseControl.
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

// NotifyOwner hints to the owner of a partition that an operator changed its parked events or its
// quarantine. It is best effort: the owner also learns that from LeaseResult.OperatorVersion.
func (c Control) NotifyOwner(ctx context.Context, p Partition) {
	_ = c.Hint(ctx, p.Stream, p.Processor, Hint{Kind: HintPoke, Partition: p.Number})
}

// announceDue hints to the owners of these partitions that an event is due before all others. Only
// owners of processors known lately are told: each moves due events for all processors, and the
// next refresh makes up for a lost hint. It takes one round trip for any number of partitions, and
// one more for a stream that had no processor when its metadata was read.
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
