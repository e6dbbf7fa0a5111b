package store

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/rules"
	"github.com/runnel-go/runnel/rebalance"
)

// A NotPausedYet is an executor in which the rules are not yet in full effect.
type NotPausedYet struct {
	Stream, Processor string
	Executor          string
	Worker            string // "" where it is no member
	Partitions        []int  // those asked about whose locks it holds

	// Silent reports that it has neither a heartbeat nor one of the locks: it has died, or
	// the server's clock was set forward, or the keys were deleted. It may go on for as
	// long as its lease, which is shorter than Expiry; 0 where that is not known.
	Silent bool
	Expiry time.Duration
}

// String names the executor, for messages.
func (h NotPausedYet) String() string {
	who := h.Executor
	if h.Worker != "" {
		who = h.Worker
	}
	s := fmt.Sprintf("%s/%s on %s", h.Stream, h.Processor, who)
	if len(h.Partitions) > 0 {
		s += fmt.Sprintf(" (partitions %s)", rebalance.Ranges(h.Partitions))
	}
	if h.Silent {
		s += " (no heartbeat; its lease may last)"
	}
	return s
}

// NotPausedYet returns the executors of a processor in which the rules are not yet in full effect,
// as inEffect judges by their generations. It asks the members, executors that hold or did not
// release the lock of one of the partitions, those that an earlier call returned, and those whose
// partition another one took over less than their expiry before now, the server's time. If it returns
// none, nothing that the rules hold back runs or can begin: a later owner reads the rules after its
// takeover. NotPausedYet changes nothing.
//
// The locks are read before the heartbeats:
//
//  1. a lock is free: its next owner obtains it later, and reads the rules later still;
//  2. a lock is held, and its holder's heartbeat has these generations: it holds back what it has;
//  3. a lock is held by an executor without a heartbeat, which was cut off or has died: its state
//     is unknown before the lock expires;
//  4. one of them has neither: it is silent, and the caller waits for its lease.
func (c Viewer) NotPausedYet(ctx context.Context, stream, processor string, partitions []int, now time.Time, inEffect func(rules.Generations) bool, earlier []NotPausedYet) ([]NotPausedYet, error) {
	calls := []*redisconn.Call{redisconn.PlainCall(ctx, "GET", c.keys.Membership(stream, processor))}
	for _, n := range partitions {
		calls = append(calls, redisconn.PlainCall(ctx, "GET", c.keys.Lock(stream, processor, n)))
	}
	for _, n := range partitions {
		calls = append(calls, redisconn.PlainCall(ctx, "HMGET", c.keys.Ownership(stream, processor, n), "tenure", "open", "expiry", "before"))
	}
	redisconn.Pipeline(ctx, c.Retrying, calls)
	wrap := func(err error) error {
		return fmt.Errorf("stream %s: processor %s: rules in effect: %w", stream, processor, err)
	}
	value, err := calls[0].Reply.Text()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, wrap(classify(err))
	}
	group, err := rebalance.Parse([]byte(value))
	if err != nil {
		return nil, wrap(err)
	}
	seen := map[string]*NotPausedYet{}
	for id, e := range group.Executors {
		seen[id] = &NotPausedYet{Stream: stream, Processor: processor, Executor: id, Worker: e.Worker, Expiry: e.Expiry}
	}
	add := func(all []NotPausedYet) {
		for _, h := range all {
			if h.Stream == stream && h.Processor == processor && seen[h.Executor] == nil {
				h.Partitions, h.Silent = nil, false
				seen[h.Executor] = &h
			}
		}
	}
	add(earlier)
	for _, call := range calls[1+len(partitions):] {
		last, err := unreleased(call.Reply, stream, processor, now)
		if err != nil {
			return nil, wrap(classify(err))
		}
		add(last)
	}
	for i, call := range calls[1 : 1+len(partitions)] {
		lock, err := call.Reply.Text()
		switch {
		case errors.Is(err, redis.Nil):
			continue
		case err != nil:
			return nil, wrap(classify(err))
		}
		id, _, _ := strings.Cut(lock, ":")
		if seen[id] == nil {
			seen[id] = &NotPausedYet{Stream: stream, Processor: processor, Executor: id, Expiry: group.Expiry()}
		}
		seen[id].Partitions = append(seen[id].Partitions, partitions[i])
	}
	out, err := c.behind(ctx, seen, inEffect)
	if err != nil {
		return nil, wrap(err)
	}
	return out, nil
}

// unreleased returns the last owner of a partition if it did not release it, and the last one that
// had not when another took over, while its lease may hold. They may be no members any more: an
// executor that has lost a lock leaves while its functions may still run.
func unreleased(reply *redis.Cmd, stream, processor string, now time.Time) (out []NotPausedYet, err error) {
	fields, err := reply.Slice()
	if err != nil || len(fields) != 4 {
		return nil, err
	}
	text := func(n int) string { s, _ := fields[n].(string); return s }
	ms := func(text string) int64 { n, _ := strconv.ParseInt(text, 10, 64); return n }
	add := func(executor, expiry string) {
		if executor != "" {
			out = append(out, NotPausedYet{Stream: stream, Processor: processor, Executor: executor, Expiry: time.Duration(ms(expiry)) * time.Millisecond})
		}
	}
	if text(1) == "1" {
		executor, _, _ := strings.Cut(text(0), ":")
		add(executor, text(2))
	}
	if before := strings.Fields(text(3)); len(before) == 3 && now.UnixMilli() < ms(before[2])+ms(before[1]) {
		add(before[0], before[1])
	}
	return out, nil
}

// behind returns the executors that report other generations, or none. Later ones count, too: a
// failover may have forgotten their rules and give the number again.
func (c Viewer) behind(ctx context.Context, seen map[string]*NotPausedYet, inEffect func(rules.Generations) bool) ([]NotPausedYet, error) {
	var out []NotPausedYet
	var calls []*redisconn.Call
	all := make([]*NotPausedYet, 0, len(seen))
	for _, h := range seen {
		all = append(all, h)
		calls = append(calls, redisconn.PlainCall(ctx, "GET", c.keys.Beat(h.Stream, h.Processor, h.Executor)))
	}
	redisconn.Pipeline(ctx, c.Retrying, calls)
	for i, h := range all {
		value, err := calls[i].Reply.Text()
		switch {
		case errors.Is(err, redis.Nil):
			h.Silent = len(h.Partitions) == 0
		case err != nil:
			return nil, classify(err)
		case inEffect(ParseHeartbeat(value).Rules):
			continue
		}
		out = append(out, *h)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].String() < out[j].String() })
	return out, nil
}
