package rstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// readMargin is how long a read waits for its reply beyond the time that it asked
// the server to block, and from then on for each further part of the reply.
const readMargin = time.Second

// readBuffer is what a reader takes from its connection at once: a large reply then
// comes in fewer pieces, each of which the reader has to be woken up for.
const readBuffer = 128 << 10

// An Entry is one entry of a partition. Values is nil when its data is gone.
type Entry = redis.XMessage

// A Chunk is the entries of one key in one read; it has at least one.
type Chunk struct {
	Key     string
	Entries []Entry
}

// A Reader reads over one connection of its own. One goroutine may read at a
// time; Interrupt may be called by others meanwhile.
type Reader struct {
	c   *Client
	rdb *redis.Client

	mu       sync.Mutex
	cur      *conn // the connection last written to
	reading  bool
	consumes bool    // that read takes entries from a group
	lost     []int64 // IDs of connections that may still execute a read
	nameless bool    // one of them has no ID
}

// NewReader returns a reader, which connects when it first reads.
func (c *Client) NewReader() *Reader {
	r := &Reader{c: c}
	o := c.options(-1)
	o.PoolSize = 1
	o.ReadBufferSize = readBuffer
	o.ConnMaxIdleTime = -1
	dial := o.Dialer
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &conn{Conn: nc, r: r}, nil
	}
	connected := o.OnConnect
	o.OnConnect = func(ctx context.Context, cn *redis.Conn) error {
		if connected != nil {
			if err := connected(ctx, cn); err != nil {
				return err
			}
		}
		return r.identify(ctx, cn)
	}
	r.rdb = redis.NewClient(o)
	return r
}

// Close closes the reader's connection.
func (r *Reader) Close() error { return r.rdb.Close() }

// Read reads new entries of partitions that share a consumer group, at most count
// of each, and waits at most block for the first; without block it does not wait.
// Nothing there is nil and no error.
//
// The end of ctx does not end the wait: a reply that nobody awaits would leave
// its entries pending. Use Interrupt. An error that is ErrUnknownOutcome means
// that entries may have been delivered to nobody: Kill, then History, finds them.
// Any other error consumed nothing.
func (r *Reader) Read(ctx context.Context, group, consumer string, logs []string, count int, block time.Duration) ([]Chunk, error) {
	args := make([]string, 0, 2*len(logs))
	args = append(args, logs...)
	for range logs {
		args = append(args, ">")
	}
	var streams []redis.XStream
	err := r.run(ctx, block, true, func(ctx context.Context) (err error) {
		streams, err = r.rdb.XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: group, Consumer: consumer, Streams: args, Count: int64(count), Block: blockArgument(block),
		}).Result()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read %d partitions of group %s: %w", len(logs), group, err)
	}
	return chunks(streams), nil
}

// History reads our own pending entries of one partition behind an ID, at most
// count. Those whose data is gone have nil Values. It consumes nothing and may
// be repeated.
func (r *Reader) History(ctx context.Context, group, consumer, log, after string, count int) ([]Entry, error) {
	var streams []redis.XStream
	var pending []redis.XPendingExt
	err := r.run(ctx, 0, false, func(ctx context.Context) (err error) {
		pending, err = r.rdb.XPendingExt(ctx, &redis.XPendingExtArgs{
			Stream: log, Group: group, Consumer: consumer, Start: after, End: "+", Count: int64(count) + 1,
		}).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		streams, err = r.rdb.XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: group, Consumer: consumer, Streams: []string{log, after}, Count: int64(count), Block: -1,
		}).Result()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read history of %s in group %s: %w", log, group, err)
	}
	var entries []Entry
	for _, s := range streams {
		entries = s.Messages
	}
	return complete(entries, pending, after, count), nil
}

// complete adds the pending entries whose data is gone, which the embedded server
// leaves out, and cuts to the count, which it ignores.
func complete(entries []Entry, pending []redis.XPendingExt, after string, count int) []Entry {
	byID := func(e Entry, id string) int { return CompareIDs(e.ID, id) }
	for _, p := range pending {
		if at, found := slices.BinarySearchFunc(entries, p.ID, byID); !found && CompareIDs(p.ID, after) > 0 {
			entries = slices.Insert(entries, at, Entry{ID: p.ID})
		}
	}
	return entries[:min(len(entries), count)]
}

// ReadControl reads control streams behind the IDs after, one for each key, and
// waits at most block for the first message. It consumes nothing and may be
// repeated after any error.
func (r *Reader) ReadControl(ctx context.Context, keys, after []string, block time.Duration) ([]Chunk, error) {
	out, err := r.Follow(ctx, keys, after, 128, block)
	if err != nil {
		return nil, fmt.Errorf("read control streams %s: %w", strings.Join(keys, ", "), err)
	}
	return out, nil
}

// Follow reads Redis streams behind the IDs after, one for each key, at most count
// entries of each, and waits at most block for the first; without block it does not
// wait. It uses no group, consumes nothing and may be repeated after any error.
func (r *Reader) Follow(ctx context.Context, keys, after []string, count int, block time.Duration) ([]Chunk, error) {
	args := append(append(make([]string, 0, 2*len(keys)), keys...), after...)
	var streams []redis.XStream
	var reply error
	err := r.run(ctx, block, false, func(ctx context.Context) error {
		streams, reply = r.rdb.XRead(ctx, &redis.XReadArgs{Streams: args, Count: int64(count), Block: blockArgument(block)}).Result()
		return reply
	})
	if err != nil && isReply(reply) {
		err = sorted(reply) // no consumer group is involved
	}
	if err != nil {
		return nil, err
	}
	return chunks(streams), nil
}

// Interrupt wakes a read that is blocked. Where the server does not know CLIENT
// UNBLOCK it closes the connection, and the read ends with ErrUnknownOutcome; where
// it does not know CLIENT KILL either, which would settle that, a read that takes
// entries goes on to its end. With nothing to wake it does nothing. A read that was about to block misses
// it: repeat it until the read has answered.
func (r *Reader) Interrupt(ctx context.Context) error {
	r.mu.Lock()
	cur, reading, consumes := r.cur, r.reading, r.consumes
	var id int64
	if cur != nil {
		id = cur.id
		reading = reading && cur.ready // during the handshake no read has been sent
	}
	r.mu.Unlock()
	if cur == nil || !reading {
		return nil
	}
	if id != 0 && r.c.CanUnblock() {
		err := r.c.ordinary.ClientUnblock(ctx, id).Err()
		if err == nil {
			return nil
		}
		if !isReply(err) {
			return fmt.Errorf("unblock a read: %w", err)
		}
		r.c.cannotUnblock.Store(true)
	}
	if consumes && !r.c.CanKill() {
		return nil
	}
	cur.cut()
	return nil
}

// Kill ends for certain every read whose outcome is unknown, so that none is
// executed from now on. It may be repeated. ErrCannotKill says that the server
// does not let us.
func (r *Reader) Kill(ctx context.Context) error {
	r.mu.Lock()
	lost, nameless := r.lost, r.nameless
	r.mu.Unlock()
	if nameless {
		r.c.cannotKill.Store(true)
		return ErrCannotKill
	}
	for _, id := range lost {
		// 0 (it had ended) and 1 are both fine.
		err := r.c.ordinary.ClientKillByFilter(ctx, "ID", fmt.Sprint(id)).Err()
		if isReply(err) {
			r.c.cannotKill.Store(true)
			return marked(ErrCannotKill, err)
		}
		if err != nil {
			return fmt.Errorf("end a read: %w", err)
		}
	}
	r.mu.Lock()
	r.lost = r.lost[len(lost):]
	r.mu.Unlock()
	return nil
}

// run runs one command with a time of its own, and sorts its error. A command
// that consumes leaves its connection's ID behind when its outcome is unknown.
func (r *Reader) run(ctx context.Context, block time.Duration, consumes bool, command func(context.Context) error) error {
	for try := 1; ; try++ {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), block+readMargin)
		r.begin(consumes)
		err := command(ctx)
		cancel()
		sent, cut := r.end(err, consumes)
		switch {
		case err == nil || errors.Is(err, redis.Nil):
			return nil
		case replyHas(err, "NOGROUP", "WRONGTYPE", "UNBLOCKED"):
			return marked(ErrNoGroup, err)
		case isReply(err):
			return err
		case sent:
			return marked(ErrUnknownOutcome, err)
		case cut && try == 1:
			continue // an interruption hit the connection between two reads
		}
		return err
	}
}

func blockArgument(block time.Duration) time.Duration {
	if block <= 0 {
		return -1
	}
	return max(block, time.Millisecond)
}

func chunks(streams []redis.XStream) []Chunk {
	var out []Chunk
	for _, s := range streams {
		if len(s.Messages) > 0 {
			out = append(out, Chunk{Key: s.Stream, Entries: s.Messages})
		}
	}
	return out
}
