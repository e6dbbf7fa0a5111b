package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// Reaches reports whether a commit in a partition can append to one of any stream with another number. Under names with
// hash tags these lie in different slots: then what is emitted goes by way of the outbox. It is there in the step of the
// commit, and a Courier brings it to its partition, once.
func (c *core) Reaches(from, to int) bool { return from == to || !c.UsesOutboxes() }

// UsesOutboxes reports whether there are partitions that a commit does not reach.
func (c *core) UsesOutboxes() bool { return c.keys.Layout == keys.Cluster }

// Boxes returns how many of some outputs of a partition go by way of its outbox, and their weight there.
func (c Owner) Boxes(from Partition, outputs []Output) (n, weight int64) {
	for _, o := range outputs {
		if !c.Reaches(from.Number, o.Partition) {
			n, weight = n+1, weight+weightOf(o.Fields)
		}
	}
	return n, weight
}

// weightOf returns the weight of an entry of an outbox: its bytes, and 8 KiB. So 8 MiB are 1 024 small ones.
func weightOf(fields []string) int64 {
	n := 8 << 10
	for _, f := range fields {
		n += len(f)
	}
	return int64(n)
}

// An outboxEntry is a record in an outbox. IDs there are the epoch of who emitted it and its number: they ascend over all
// owners.
type outboxEntry struct {
	id     string
	fields []string
}

// box appends an entry for an outbox to the arguments of commit_changes.lua.
func box(t StreamPartition, args []any, fields []string) []any {
	args = append(args, 2+len(fields), "to", strconv.Itoa(t.Partition)+" "+t.Stream)
	for f := range fields {
		args = append(args, &fields[f])
	}
	return args
}

// unbox returns what box has made, from an entry as XRANGE returns it.
func unbox(entry any) (to StreamPartition, e outboxEntry, err error) {
	var fields []any
	if both, ok := entry.([]any); ok && len(both) == 2 {
		e.id, _ = both[0].(string)
		fields, _ = both[1].([]any)
	}
	for _, f := range fields {
		text, _ := f.(string)
		e.fields = append(e.fields, text)
	}
	if len(e.fields) < 2 {
		return to, e, fmt.Errorf("unexpected entry %v", entry)
	}
	number, stream, _ := strings.Cut(e.fields[1], " ")
	if to.Partition, err = strconv.Atoi(number); err != nil {
		return to, e, fmt.Errorf("entry %s is for an unknown place: %w", e.id, err)
	}
	to.Stream, e.fields = stream, e.fields[2:]
	return to, e, nil
}

// outboxName is the name of a partition's outbox where what it has is for.
func (p Partition) outboxName() string {
	return p.Stream + "/" + p.Processor + "/" + strconv.Itoa(p.Number)
}

// hopCall returns a call that appends entries to their target. after is the ID up to which all is there, "" for unknown.
func (c *core) hopCall(ctx context.Context, from Partition, to StreamPartition, after string, most int64, entries []outboxEntry) *redisconn.Call {
	args := []any{from.outboxName(), after, most, c.MinReplicas() > 0}
	for _, e := range entries {
		args = append(args, e.id, len(e.fields))
		for f := range e.fields {
			args = append(args, &e.fields[f])
		}
	}
	hops := keys.MustKind("hop").Key(c.keys, to.Stream, "", "", to.Partition)
	return redisconn.ScriptCall(ctx, hopScript, []string{c.keys.Partition(to.Stream, to.Partition), hops}, args...)
}

// hopReply returns the ID up to which all has come, and how much came by this call.
func hopReply(call *redisconn.Call) (last string, n int64, err error) {
	reply, err := call.Reply.Slice()
	if err == nil {
		err = scan(reply, &last, &n)
	}
	return last, n, classify(err)
}

// LastHop returns the epoch of the owner that emitted what came last from a partition's outbox to a partition, 0 for none. An
// owner with no larger epoch emits nothing there: it would pass for what has come already.
func (c Owner) LastHop(ctx context.Context, from Partition, to StreamPartition) (epoch int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, redisconn.Patience)
	defer cancel()
	call := c.hopCall(ctx, from, to, "", 0, nil)
	redisconn.Pipeline(ctx, c.NoRetry, []*redisconn.Call{call})
	last, _, err := hopReply(call)
	if err == nil {
		ms, _, _ := strings.Cut(last, "-")
		epoch, err = strconv.ParseInt(ms, 10, 64)
	}
	return epoch, from.wrap(fmt.Sprintf("outputs to partition %d of stream %s", to.Partition, to.Stream), err)
}

// readOutbox removes what has come, up to an ID, if that is not "", and returns entries behind another one, none if there are none.
func (c *core) readOutbox(ctx context.Context, p Partition, done, after string, count int) ([]any, error) {
	ctx, cancel := context.WithTimeout(ctx, redisconn.Patience)
	defer cancel()
	call := redisconn.ScriptCall(ctx, outboxScript, []string{p.Outbox, p.Own}, done, after, count, bytesPerHop, c.MinReplicas() > 0)
	weak := c.Durably(ctx, []*redisconn.Call{call})
	reply, err := call.Reply.Slice()
	if err = classify(err); err == nil {
		err = weak
	}
	return reply, p.wrap("outbox", err)
}

// Outputs returns how many outputs wait in the outboxes of some partitions, in their order.
func (c Viewer) Outputs(ctx context.Context, ps []Partition) ([]int64, error) {
	calls, out := make([]*redisconn.Call, len(ps)), make([]int64, len(ps))
	for i, p := range ps {
		calls[i] = redisconn.PlainCall(ctx, "XLEN", p.Outbox)
	}
	redisconn.PipelineInTurns(ctx, c.Retrying, calls, partitionsPerTrip)
	var errs []error
	for i, call := range calls {
		n, err := call.Reply.Int64()
		out[i] = n
		errs = append(errs, ps[i].wrap("outbox", c.NameWrongTypes(ctx, []string{ps[i].Outbox}, classify(err))))
	}
	return out, errors.Join(errs...)
}
