package redisconn

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// While sweeps find nothing, the pause between them doubles, also from one read to the next, between
// these two bounds. It grows further if a reader would otherwise ask for more than sweepsPerSecond
// partitions a second, not counting the sweeps that begin and end a read.
const (
	firstSweepPause = time.Millisecond
	lastSweepPause  = 20 * time.Millisecond
	sweepsPerSecond = 1000
)

// A readRequest is a read of several keys.
type readRequest struct {
	keys     []string
	block    time.Duration
	consumes bool
	// ask asks for the keys at these places, which share a slot.
	ask func(ctx context.Context, rdb redis.Cmdable, at []int, block time.Duration) *redis.XStreamSliceCmd
}

// read asks one server for all keys at once. In a cluster one request names keys of
// one slot only: then it asks for each, and blocks only where there is one.
func (r *Reader) read(ctx context.Context, q readRequest) ([]Chunk, error) {
	parts := r.c.Slots(len(q.keys), len(q.keys), func(i int) string { return q.keys[i] })
	if len(parts) == 1 {
		var out []Chunk
		err := r.at(ctx, q.keys[0], q.block, q.consumes, func(ctx context.Context, rdb redis.Cmdable) error {
			streams, err := q.ask(ctx, rdb, parts[0], q.block).Result()
			out = chunks(streams)
			return err
		})
		return out, err
	}
	select {
	case <-r.woken: // meant for a read before
	default:
	}
	var ended <-chan struct{}
	if r.tail {
		ended = ctx.Done()
	}
	end := time.Now().Add(q.block)
	longest := max(lastSweepPause, time.Duration(len(parts))*time.Second/sweepsPerSecond)
	for {
		out, err := r.pollSlots(ctx, q, parts)
		left := time.Until(end)
		if len(out) > 0 || err != nil {
			r.pause = 0
			return out, err
		}
		if left <= 0 {
			return nil, nil
		}
		r.pause = min(max(2*r.pause, firstSweepPause), longest)
		timer := time.NewTimer(min(r.pause, left))
		select {
		case <-r.woken:
			timer.Stop()
			return nil, nil
		case <-ended:
			timer.Stop()
			return nil, nil
		case <-timer.C:
		}
	}
}

// at runs a command at the server that has a key; in a cluster it follows
// redirections.
func (r *Reader) at(ctx context.Context, key string, block time.Duration, consumes bool, command func(context.Context, redis.Cmdable) error) error {
	if r.c.cluster == nil {
		l := r.line(nil)
		return l.run(ctx, block, consumes, func(ctx context.Context) error { return command(ctx, l.rdb) })
	}
	k := r.c.cluster
	n, err := k.of(ctx, Slot(key))
	if err != nil {
		return err
	}
	for asking, try := false, 0; ; try++ {
		if !asking { // else each read would count, while a slot is on its way
			r.asks(Slot(key), n)
		}
		l := r.line(n)
		err := l.run(ctx, block, consumes, func(ctx context.Context) error {
			if asking { // over the line's one connection
				if err := l.rdb.Do(ctx, "ASKING").Err(); err != nil {
					return err
				}
			}
			return command(ctx, l.rdb)
		})
		slot, addr, ask := redirection(err)
		if addr == "" || try == redirections {
			if err != nil && (!IsReply(err) || ReplyHas(err, "CLUSTERDOWN")) && !errors.Is(context.Cause(ctx), errWoken) {
				k.lookSoon()
			}
			return err
		}
		n, asking = k.node(k.addrOf(addr, n.addr)), ask
		if !ask {
			k.moved(slot, n)
		}
	}
}

// A nodePoll is the request of a sweep to one node, and its replies.
type nodePoll struct {
	n       *node
	parts   [][]int
	replies []*redis.XStreamSliceCmd
	err     error // of the connection
}

// pollSlots asks once for the keys of all slots, over one connection to each node and all
// nodes at the same time, and does not wait for entries.
func (r *Reader) pollSlots(ctx context.Context, q readRequest, parts [][]int) ([]Chunk, error) {
	var all []*nodePoll
	var errs []error
	by := map[*node]*nodePoll{}
	for _, part := range parts {
		n, err := r.c.cluster.of(ctx, Slot(q.keys[part[0]]))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if by[n] == nil {
			by[n] = &nodePoll{n: n}
			all = append(all, by[n])
		}
		r.asks(Slot(q.keys[part[0]]), n)
		by[n].parts = append(by[n].parts, part)
	}
	var wg sync.WaitGroup
	for _, s := range all {
		wg.Go(func() { r.sweepNode(ctx, q, s) })
	}
	wg.Wait()
	var out []Chunk
	for _, s := range all {
		if s.err != nil {
			errs = append(errs, s.err)
			r.c.cluster.lookSoon()
			continue // what some of them brought is found in the history
		}
		for i, reply := range s.replies {
			streams, err := r.slotReply(ctx, q, s, i, reply)
			out = append(out, chunks(streams)...)
			errs = append(errs, err)
		}
	}
	return out, errors.Join(errs...)
}

func (r *Reader) sweepNode(ctx context.Context, q readRequest, s *nodePoll) {
	l := r.line(s.n)
	s.err = l.run(ctx, 0, q.consumes, func(ctx context.Context) error {
		pipe := l.rdb.Pipeline()
		s.replies = s.replies[:0]
		for _, part := range s.parts {
			s.replies = append(s.replies, q.ask(ctx, pipe, part, 0))
		}
		_, err := pipe.Exec(ctx)
		if IsReply(err) {
			return nil // of one of them
		}
		return err
	})
}

// slotReply returns the streams of one part of a sweep. If the slot has moved, slotReply asks its new
// node.
func (r *Reader) slotReply(ctx context.Context, q readRequest, s *nodePoll, i int, reply *redis.XStreamSliceCmd) ([]redis.XStream, error) {
	streams, err := reply.Result()
	slot, addr, asking := redirection(err)
	switch {
	case err == nil || errors.Is(err, redis.Nil):
		return streams, nil
	case addr == "" && ReplyHas(err, "NOGROUP", "WRONGTYPE", "UNBLOCKED"):
		return nil, WithSentinel(ErrNoGroup, err)
	case addr == "":
		return nil, err
	case !asking:
		r.c.cluster.moved(slot, r.c.cluster.node(r.c.cluster.addrOf(addr, s.n.addr)))
	}
	part := s.parts[i]
	err = r.at(ctx, q.keys[part[0]], 0, q.consumes, func(ctx context.Context, rdb redis.Cmdable) error {
		streams, err = q.ask(ctx, rdb, part, 0).Result()
		return err
	})
	return streams, err
}
