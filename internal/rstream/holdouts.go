package rstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/rebalance"
)

// A Holdout is an executor in which the rules are not yet in full effect.
type Holdout struct {
	Stream, Processor string
	Executor          string
	Worker            string // "" where it is no member
	Partitions        []int  // of those that were asked about, whose locks it holds
}

// String names the executor, for messages.
func (h Holdout) String() string {
	who := h.Executor
	if h.Worker != "" {
		who = h.Worker
	}
	s := fmt.Sprintf("%s/%s on %s", h.Stream, h.Processor, who)
	if len(h.Partitions) > 0 {
		s += fmt.Sprintf(" (partitions %s)", rebalance.Ranges(h.Partitions))
	}
	return s
}

// Holdouts returns the executors of a processor in which a generation of the
// rules is not yet in full effect, of all that are alive or hold the lock of one
// of the partitions. None means that of what these rules hold back nothing runs,
// and nothing can begin to, for whoever takes a partition over from now on reads
// the rules after that. It changes nothing.
//
// The locks are read before the heartbeats:
//
//  1. a lock is free: its next owner obtains it later, and reads the rules later
//     still;
//  2. a lock is held, and the heartbeat of its holder tells this generation or a
//     later one: it holds back whatever it has;
//  3. a lock is held by an executor without a heartbeat, which was cut off or has
//     died: nobody knows, before the lock expires.
func (c *Client) Holdouts(ctx context.Context, stream, processor string, partitions []int, generation int64) ([]Holdout, error) {
	calls := []*call{plainCall(ctx, "GET", c.keys.Membership(stream, processor))}
	for _, n := range partitions {
		calls = append(calls, plainCall(ctx, "GET", c.keys.Lock(stream, processor, n)))
	}
	pipeline(ctx, c.ordinary, calls)
	wrap := func(err error) error {
		return fmt.Errorf("stream %s: processor %s: rules in effect: %w", stream, processor, err)
	}
	value, err := calls[0].reply.Text()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, wrap(sorted(err))
	}
	group, err := rebalance.Parse([]byte(value))
	if err != nil {
		return nil, wrap(err)
	}
	seen := map[string]*Holdout{}
	for id, e := range group.Executors {
		seen[id] = &Holdout{Stream: stream, Processor: processor, Executor: id, Worker: e.Worker}
	}
	for i, call := range calls[1:] {
		lock, err := call.reply.Text()
		switch {
		case errors.Is(err, redis.Nil):
			continue
		case err != nil:
			return nil, wrap(sorted(err))
		}
		id, _, _ := strings.Cut(lock, ":")
		if seen[id] == nil {
			seen[id] = &Holdout{Stream: stream, Processor: processor, Executor: id}
		}
		seen[id].Partitions = append(seen[id].Partitions, partitions[i])
	}
	out, err := c.behind(ctx, seen, generation)
	if err != nil {
		return nil, wrap(err)
	}
	return out, nil
}

// behind are those of them that tell of another generation, or of none while they
// hold a lock. A later one is another one, too: a failover may have forgotten the
// rules that it was of, and then a number is given again.
func (c *Client) behind(ctx context.Context, seen map[string]*Holdout, generation int64) ([]Holdout, error) {
	var out []Holdout
	var calls []*call
	all := make([]*Holdout, 0, len(seen))
	for _, h := range seen {
		all = append(all, h)
		calls = append(calls, plainCall(ctx, "GET", c.keys.Beat(h.Stream, h.Processor, h.Executor)))
	}
	pipeline(ctx, c.ordinary, calls)
	for i, h := range all {
		value, err := calls[i].reply.Text()
		switch {
		case errors.Is(err, redis.Nil):
			if len(h.Partitions) == 0 {
				continue // dead, and in nobody's way
			}
		case err != nil:
			return nil, sorted(err)
		case ParseBeat(value).Rules == generation:
			continue
		}
		out = append(out, *h)
	}
	slices.SortFunc(out, func(a, b Holdout) int { return strings.Compare(a.String(), b.String()) })
	return out, nil
}
