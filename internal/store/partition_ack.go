package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/runnel-go/runnel/internal/redisconn"
)

// An Ack names the entries of one partition that are done.
type Ack struct {
	Place Partition
	IDs   []string
	Gone  []string // those of IDs that were removed while pending, to be counted
}

// Ack acks entries under a consumer group, one XACK for each element, in one round trip with a
// timeout of its own. Results are in the order of acks: nil for acked, ErrFenced if the group is
// gone, ErrWrongType; after any other error entries may be acked or not, and acking them again is
// safe.
func (c Owner) Ack(ctx context.Context, group string, acks []Ack) []error {
	ctx, cancel := context.WithTimeout(ctx, redisconn.Patience)
	defer cancel()
	calls := make([]*redisconn.Call, len(acks))
	for i, a := range acks {
		if len(a.Gone) > 0 {
			calls[i] = goneCall(ctx, group, a)
			continue
		}
		args := make([]any, 3, 3+len(a.IDs))
		args[0], args[1], args[2] = "XACK", a.Place.Log, group
		for k := range a.IDs {
			args = append(args, &a.IDs[k]) // an any of a string would be one more allocation for each
		}
		calls[i] = redisconn.PlainCall(ctx, args...)
	}
	redisconn.Pipeline(ctx, c.NoRetry, calls)
	errs := make([]error, len(acks))
	var short []int
	for i, a := range acks {
		n, err := calls[i].Reply.Int64()
		if err == nil && n < int64(len(a.IDs)) {
			short = append(short, i)
		}
		errs[i] = a.Place.wrap(fmt.Sprintf("ack %d events", len(a.IDs)), classify(err))
	}
	c.settle(ctx, group, acks, short, errs)
	return errs
}

func goneCall(ctx context.Context, group string, a Ack) *redisconn.Call {
	there := slices.DeleteFunc(slices.Clone(a.IDs), func(id string) bool { return slices.Contains(a.Gone, id) })
	args := appendTexts(appendTexts([]any{group, len(a.Gone)}, a.Gone), there)
	return redisconn.ScriptCall(ctx, goneScript, []string{a.Place.Log, a.Place.Own}, args...)
}

// settle finds out what too small a count means: the group is gone, or the entries were acked
// before by an ack whose reply was lost.
func (c Owner) settle(ctx context.Context, group string, acks []Ack, short []int, errs []error) {
	calls := make([]*redisconn.Call, len(short))
	for i, at := range short {
		calls[i] = redisconn.PlainCall(ctx, "XPENDING", acks[at].Place.Log, group)
	}
	redisconn.Pipeline(ctx, c.Retrying, calls)
	for i, at := range short {
		errs[at] = acks[at].Place.wrap("ack", classify(calls[i].Reply.Err()))
	}
}
