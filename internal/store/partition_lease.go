package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/rules"
)

// Bounds for the server time of one script: leases, and groups, which it reads when it counts.
const (
	leasesPerScript = 1024
	groupsPerScript = 2048
)

// A LeaseRequest is one refresh of one owned partition.
type LeaseRequest struct {
	Partition Partition
	Claim     Claim
	Committed string // acked up to here; stored as the checkpoint
	// Read is the number of entries ever appended up to Committed, less lost ones; -1: unknown.
	Read int64

	// At is the last entry given to us, "" if nothing is to be counted, and Count is Read up to At.
	At    string
	Count int64

	// Begun is the last entry that an owner by position, or one before it, may have begun, for Release; "" by group.
	Begun string
}

func (r LeaseRequest) group() string { return GroupName(r.Partition.Processor, r.Claim.Executor) }

// State is the server's view of an ownership.
type State int

const (
	Ours      State = 1  // the lock holds our value and the group is there
	Lost      State = 0  // the lock does not hold our value
	GroupGone State = -1 // the lock is ours, the group is not there, or is an earlier ownership's
	BadType   State = -2 // a key holds a wrong Redis type
	Unknown   State = -3 // the node of a cluster could not be asked
)

// String names the state, for logs.
func (s State) String() string {
	names := map[State]string{Ours: "ours", Lost: "lost", GroupGone: "group gone", BadType: "bad type", Unknown: "unknown"}
	return cmp.Or(names[s], fmt.Sprintf("State(%d)", int(s)))
}

// LeaseResult is the result of one LeaseRequest.
type LeaseResult struct {
	State           State
	Pending         int64  // delivered and not acked
	Lowest          string // ID of the lowest pending entry, "" when none is
	OperatorVersion int64  // number of changes by operators: when it grows, look at retries and quarantine again

	Lost    int64 // entries ever removed before they were delivered
	Counted bool  // Lost has what was removed up to the request's At; what is behind is counted later
	Count   int64 // if so, what the request's Count should be, -1 if unknown
	Suspect bool  // of an owner by position, more may be lost: see CountLost

	Stored string // the committed position stored before this refresh, "" for none

	// Due is how long until the partition's next delayed event is due, at least a nanosecond; 0 if
	// none waits or that is not known.
	Due time.Duration
}

// A Heartbeat is what an executor writes and reads with each refresh.
type Heartbeat struct {
	Key        string // of the heartbeat
	Expiry     time.Duration
	Info       HeartbeatInfo // what the heartbeat says
	Membership string        // key of the membership
	Seen       []byte        // what the last refresh read there, which is not sent again; not changed
}

// RefreshResult is the result of a refresh.
type RefreshResult struct {
	Leases     []LeaseResult     // in the order of the requests
	Membership []byte            // nil if there is none; Seen if it did not change
	Unread     error             // why the membership could not be read
	Rules      rules.Generations // each -1 if it could not be read
	Now        int64             // by the server's clock, in ms; 0 when it did not answer
}

// Refresh writes the heartbeat, reads the membership and the generations of the rules, extends the
// locks that hold our value and stores the committed positions, in one round trip. It never takes a
// lost lock again. rs may be empty. After an error nothing is known of any of it; Refresh may be
// repeated. A membership that holds something else is no error: see Unread.
//
// In a cluster some nodes may answer and others not: then there are both an error and a result, in
// which the state of each partition of the others is Unknown.
func (c Owner) Refresh(ctx context.Context, p Heartbeat, rs []LeaseRequest) (RefreshResult, error) {
	shared := []*redisconn.Call{heartbeatCall(ctx, p), redisconn.PlainCall(ctx, "HGET", c.keys.Rules(), "generation"), redisconn.PlainCall(ctx, "HGET", c.keys.Blocks(), "generation")}
	parts := c.Slots(len(rs), c.leases(rs), func(i int) string { return rs[i].Partition.Log })
	var leases, heads []*redisconn.Call
	for _, part := range parts {
		leases, heads = append(leases, refreshCall(ctx, p.Expiry, rs, part, false)), append(heads, headsCall(ctx, rs, part))
	}
	redisconn.Pipeline(ctx, c.NoRetry, slices.Concat(shared, leases, heads))
	out, failed := parseRefresh(p, shared[0].Reply)
	if failed != nil && !c.Clustered() {
		return RefreshResult{}, failed
	}
	out.Rules = rules.Generations{Pauses: generationOf(shared[1].Reply), Blocks: generationOf(shared[2].Reply)}
	out.Leases = make([]LeaseResult, len(rs))
	for n, part := range parts {
		renewed, err := parseLeaseResults(leases[n].Reply)
		if err == nil && len(renewed) != len(part) {
			err = fmt.Errorf("reply for %d", len(renewed))
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("refresh %d locks: %w", len(part), classify(err)))
			renewed = slices.Repeat([]LeaseResult{{State: Unknown}}, len(part))
		}
		setDue(renewed, heads[n])
		for i, at := range part {
			out.Leases[at] = renewed[i]
		}
	}
	if failed != nil && !c.Clustered() {
		return RefreshResult{}, failed
	}
	return out, failed
}

// leases returns how many leases one script may extend.
func (c Owner) leases(rs []LeaseRequest) int {
	for _, r := range rs {
		if m, _ := c.metas.load(r.Partition.Stream); r.At != "" {
			return min(leasesPerScript, max(1, groupsPerScript/max(1, len(m.Processors))))
		}
	}
	return leasesPerScript
}

func refreshCall(ctx context.Context, expiry time.Duration, rs []LeaseRequest, part []int, still bool) *redisconn.Call {
	const each = 7
	keys, texts := make([]string, 0, 3*len(part)), make([]string, 0, each*len(part))
	group, before := "", (*LeaseRequest)(nil)
	for _, at := range part {
		r := &rs[at]
		if before == nil || r.Partition.Processor != before.Partition.Processor || r.Claim.Executor != before.Claim.Executor {
			group = r.group()
		}
		before = r
		keys = append(keys, r.Partition.Log, r.Partition.Lock, r.Partition.Own)
		texts = append(texts, group, r.Claim.LockValue(), r.Committed, known(r.Read), r.At, known(r.Count), known(cmp.Or(r.Claim.Reach, -1)))
	}
	args := make([]any, 2, 2+len(texts))
	args[0], args[1] = milliseconds(expiry), 0
	if still {
		args[1] = 1
	}
	for i := range texts {
		args = append(args, &texts[i])
	}
	return redisconn.ScriptCall(ctx, refreshScript, keys, args...)
}

// CountLost is Refresh of owners by position that counts what was removed behind At of each, while no read of their
// partitions is under way: what such a read brings may be removed meanwhile. The next Refresh returns what is lost.
func (c Owner) CountLost(ctx context.Context, expiry time.Duration, rs []LeaseRequest) error {
	calls := make([]*redisconn.Call, len(rs))
	for i := range rs {
		calls[i] = refreshCall(ctx, expiry, rs, []int{i}, true)
	}
	redisconn.Pipeline(ctx, c.NoRetry, calls)
	var errs []error
	for _, call := range calls {
		errs = append(errs, classify(call.Reply.Err()))
	}
	return errors.Join(errs...)
}

// known returns n as text, "" if it is unknown.
func known(n int64) string {
	if n < 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// parseLeaseResults parses the lines of refresh.lua.
func parseLeaseResults(reply *redis.Cmd) ([]LeaseResult, error) {
	text, err := reply.Text()
	if err != nil {
		return nil, err
	}
	out := make([]LeaseResult, 0, strings.Count(text, "\n"))
	for line := range strings.Lines(text) {
		w := metaText{rest: line[:len(line)-1]}
		r := LeaseResult{State: State(w.number()), Pending: w.number(), Lowest: w.text()}
		if w.rest != "" {
			r.OperatorVersion, r.Lost = w.number(), w.number()
			counted := w.number()
			r.Counted, r.Suspect = counted == 1, counted == 2
			if n := w.number(); r.Counted {
				r.Count = n
			}
			r.Stored = w.text()
		}
		if w.err != nil {
			return nil, fmt.Errorf("unexpected reply %q: %w", line, w.err)
		}
		out = append(out, r)
	}
	return out, nil
}

// metaText reads a line word by word.
type metaText struct {
	rest string
	err  error
}

// text returns the next word, "" for "-".
func (w *metaText) text() (word string) {
	word, w.rest, _ = strings.Cut(w.rest, " ")
	if word == "" && w.err == nil {
		w.err = errors.New("a word is missing")
	}
	if word == "-" {
		return ""
	}
	return word
}

func (w *metaText) number() int64 {
	n, err := strconv.ParseInt(w.text(), 10, 64)
	if w.err == nil {
		w.err = err
	}
	return n
}

// Probe looks at ownerships without changing anything, in one round trip. After a read that failed
// with ErrNoGroup, it finds the lost partitions.
func (c Owner) Probe(ctx context.Context, rs []LeaseRequest) ([]State, error) {
	var calls []*redisconn.Call
	for _, r := range rs {
		calls = append(calls, redisconn.PlainCall(ctx, "GET", r.Partition.Lock), redisconn.PlainCall(ctx, "XPENDING", r.Partition.Log, r.group()))
	}
	redisconn.Pipeline(ctx, c.Retrying, calls)
	states := make([]State, len(rs))
	for i, r := range rs {
		lock, lockErr := calls[2*i].Reply.Text()
		pendingErr := calls[2*i+1].Reply.Err()
		switch {
		case redisconn.ReplyHas(lockErr, "WRONGTYPE"), redisconn.ReplyHas(pendingErr, "WRONGTYPE"):
			states[i] = BadType
		case lockErr != nil && !errors.Is(lockErr, redis.Nil):
			return nil, r.Partition.wrap("probe", lockErr)
		case lock != r.Claim.LockValue():
			states[i] = Lost
		case redisconn.ReplyHas(pendingErr, "NOGROUP"):
			states[i] = GroupGone
		case pendingErr != nil:
			return nil, r.Partition.wrap("probe", pendingErr)
		default:
			states[i] = Ours
		}
	}
	return states, nil
}

// PendingBelow returns the IDs of at most limit pending entries of a group, from the lowest up to
// upTo, which a "(" before it excludes.
func (c Owner) PendingBelow(ctx context.Context, p Partition, group, upTo string, limit int) ([]string, error) {
	upTo, without := strings.CutPrefix(upTo, "(") // which the embedded server does not understand
	pending, err := c.Retrying.XPendingExt(ctx, &redis.XPendingExtArgs{
		Stream: p.Log, Group: group, Start: "-", End: upTo, Count: int64(limit),
	}).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, p.wrap("pending entries", classify(err))
	}
	if n := len(pending); without && n > 0 && pending[n-1].ID == upTo {
		pending = pending[:n-1]
	}
	ids := make([]string, len(pending))
	for i, entry := range pending {
		ids[i] = entry.ID
	}
	return ids, nil
}

// GroupRead returns the last entry that a consumer group of a partition was given, "" where it is not there or does not tell.
func (c Owner) GroupRead(ctx context.Context, p Partition, group string) (last string, err error) {
	groups, err := c.Retrying.XInfoGroups(ctx, p.Log).Result()
	for _, g := range groups {
		if g.Name == group {
			last = g.LastDeliveredID
		}
	}
	return last, p.wrap("look at the group", classify(err))
}

// DestroyGroup destroys a consumer group of a partition; a missing group is no error.
func (c Owner) DestroyGroup(ctx context.Context, p Partition, group string) error {
	return p.wrap("destroy group", classify(c.Retrying.XGroupDestroy(ctx, p.Log, group).Err()))
}
