package redisconn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/runnel-go/runnel/internal/entryid"
)

// readMargin is how long a read waits for its reply beyond the time that it asked
// the server to block, and from then on for each further part of the reply.
const readMargin = time.Second

// connectMargin is what a read takes longer, at most, that needs a connection first: five round trips, or more with TLS.
const connectMargin = 2 * time.Second

// readBuffer is the size of a reader's buffer: a large reply then comes in fewer pieces,
// each of which wakes the reader.
const readBuffer = 128 << 10

// idleConn is how long a connection may be idle and be used again: a firewall on the way may have forgotten it by then.
const idleConn = 30 * time.Second

// An Entry is one entry of a partition. Values is nil when its data is gone.
type Entry = redis.XMessage

// A Chunk is the entries of one key in one read; it has at least one.
type Chunk struct {
	Key     string
	Entries []Entry
}

// A Reader reads over one connection of its own; in a cluster over one to each node
// that it reads of. One goroutine may read at a time; Interrupt may be called by
// others meanwhile.
type Reader struct {
	c     *Conn
	tail  bool          // its reads have no effect, and end with their contexts
	pause time.Duration // the last one between sweeps, 0 after one that found something; only the reading goroutine uses it
	made  atomic.Int64  // connections

	mu    sync.Mutex
	lines map[*node]*readConn // by node of a cluster, nil for the one server
	woken chan struct{}       // Interrupt sends to it
	on    map[int]*node       // where slots of a cluster were asked last; only the reading goroutine uses it
}

// asks notes that a slot is asked at a node. Another one than before counts as a connection, though there may be one already: it
// may be behind the one before.
func (r *Reader) asks(slot int, n *node) {
	if before := r.on[slot]; before != nil && before != n {
		r.made.Add(1)
	}
	r.on[slot] = n
}

// NewReader returns a reader, which connects when it first reads.
func (c *Conn) NewReader() *Reader {
	return &Reader{c: c, lines: map[*node]*readConn{}, on: map[int]*node{}, woken: make(chan struct{}, 1)}
}

// line returns the connection to a node.
func (r *Reader) line(n *node) *readConn {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lines[n]
	if l == nil {
		if n == nil {
			l = newReadConn(r.c, r.c.base.Addr, r.c.Retrying, r.tail, &r.made)
		} else {
			l = newReadConn(r.c, n.addr, n.rdb, r.tail, &r.made)
		}
		r.lines[n] = l
	}
	return l
}

// all returns the connections that were needed so far, by node.
func (r *Reader) all() map[*node]*readConn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.lines)
}

// Waiting reports whether a read has been sent to the one server and has no reply yet. For a
// cluster it is false.
func (r *Reader) Waiting() bool {
	l := r.line(nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reading && l.cur != nil && l.cur.sent
}

// Close closes the reader's connections.
func (r *Reader) Close() error {
	var errs []error
	for _, l := range r.all() {
		errs = append(errs, l.rdb.Close())
	}
	return errors.Join(errs...)
}

// Read reads new entries of partitions that share a consumer group, at most count
// of each, and waits at most block for the first; without block it does not wait.
// Nothing there is nil and no error. In a cluster partitions of several slots are
// asked in turn until there is something; see sweep.
//
// The end of ctx does not end the wait: the entries of an abandoned reply would stay
// pending. Use Interrupt. An error that is ErrUnknownOutcome means that the server may
// have delivered entries that the caller did not get: Kill, then History, finds them. Any
// other error consumed nothing, except, in a cluster, the chunks returned with it, which
// are of other partitions.
func (r *Reader) Read(ctx context.Context, group, consumer string, logs []string, count int, block time.Duration) ([]Chunk, error) {
	out, err := r.read(ctx, readRequest{keys: logs, block: block, consumes: true, ask: func(ctx context.Context, rdb redis.Cmdable, at []int, block time.Duration) *redis.XStreamSliceCmd {
		args := make([]string, 0, 2*len(at))
		for _, i := range at {
			args = append(args, logs[i])
		}
		for range at {
			args = append(args, ">")
		}
		return rdb.XReadGroup(ctx, &redis.XReadGroupArgs{Group: group, Consumer: consumer, Streams: args, Count: int64(count), Block: blockArgument(block)})
	}})
	if err != nil {
		return out, fmt.Errorf("read %d partitions of group %s: %w", len(logs), group, err)
	}
	return out, nil
}

// History reads the consumer's own pending entries of one partition after an ID, at most
// count. Those whose data is gone have nil Values. It consumes nothing and may be
// repeated.
func (r *Reader) History(ctx context.Context, group, consumer, log, after string, count int) ([]Entry, error) {
	var streams []redis.XStream
	var pending []redis.XPendingExt
	err := r.at(ctx, log, 0, false, func(ctx context.Context, rdb redis.Cmdable) (err error) {
		pending, err = rdb.XPendingExt(ctx, &redis.XPendingExtArgs{
			Stream: log, Group: group, Consumer: consumer, Start: after, End: "+", Count: int64(count) + 1,
		}).Result()
		return err
	})
	if err == nil { // By itself: a redirection is for one command.
		err = r.at(ctx, log, 0, false, func(ctx context.Context, rdb redis.Cmdable) (err error) {
			streams, err = rdb.XReadGroup(ctx, &redis.XReadGroupArgs{
				Group: group, Consumer: consumer, Streams: []string{log, after}, Count: int64(count), Block: -1,
			}).Result()
			return err
		})
	}
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
	byID := func(e Entry, id string) int { return entryid.Compare(e.ID, id) }
	for _, p := range pending {
		if at, found := slices.BinarySearchFunc(entries, p.ID, byID); !found && entryid.Compare(p.ID, after) > 0 {
			entries = slices.Insert(entries, at, Entry{ID: p.ID})
		}
	}
	return entries[:min(len(entries), count)]
}

// Follow reads Redis streams behind the IDs after, one for each key, at most count
// entries of each, and waits at most block for the first; without block it does not
// wait. It uses no group, consumes nothing and may be repeated after any error.
func (r *Reader) Follow(ctx context.Context, keys, after []string, count int, block time.Duration) ([]Chunk, error) {
	out, err := r.read(ctx, readRequest{keys: keys, block: block, ask: func(ctx context.Context, rdb redis.Cmdable, at []int, block time.Duration) *redis.XStreamSliceCmd {
		args := make([]string, 0, 2*len(at))
		for _, i := range at {
			args = append(args, keys[i])
		}
		for _, i := range at {
			args = append(args, after[i])
		}
		return rdb.XRead(ctx, &redis.XReadArgs{Streams: args, Count: int64(count), Block: blockArgument(block)})
	}})
	if reply := redis.Error(nil); errors.As(err, &reply) {
		err = Classify(reply) // no consumer group is involved
	}
	return out, err
}

// Connections returns how many connections the reader has made. As long as the number stays the same, all commands
// go to the servers that they went to before.
func (r *Reader) Connections() int64 { return r.made.Load() }

// Script runs a script over the connection that reads of its first key use.
func (r *Reader) Script(ctx context.Context, s *redis.Script, keys []string, args ...any) (reply *redis.Cmd) {
	err := r.at(ctx, keys[0], 0, false, func(ctx context.Context, rdb redis.Cmdable) error {
		reply = s.Run(ctx, rdb, keys, args...)
		return reply.Err()
	})
	if reply == nil {
		reply = redis.NewCmd(ctx)
	}
	reply.SetErr(err)
	return reply
}

// Interrupt wakes a blocked read, if there is one. If the server does not permit CLIENT UNBLOCK,
// Interrupt closes the connection, and the read ends with ErrUnknownOutcome. If CLIENT KILL, which
// would settle that outcome, is not permitted either, a read that takes entries goes on to its end.
// A read that was about to block misses the interruption: repeat it until the read has answered.
func (r *Reader) Interrupt(ctx context.Context) error {
	select {
	case r.woken <- struct{}{}:
	default:
	}
	var errs []error
	for _, l := range r.all() {
		errs = append(errs, l.interrupt(ctx))
	}
	return errors.Join(errs...)
}

// Kill ends for certain every read whose outcome is unknown, so that none is executed
// from now on. It may be repeated. It returns ErrCannotKill if the server does not permit
// it.
//
// A node of a cluster that cannot be reached and serves no slot any more counts as
// settled: what it still may execute, it does to data that it throws away.
func (r *Reader) Kill(ctx context.Context) error {
	var errs []error
	for n, l := range r.all() {
		l.mu.Lock()
		lost := len(l.lost)
		l.mu.Unlock()
		err := l.kill(ctx)
		if err != nil && n != nil && !errors.Is(err, ErrCannotKill) {
			err = r.elsewhere(ctx, n, l, lost, err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// elsewhere settles the reads that were lost on a node which serves nothing any more. It
// has a time of its own: a node that stands still has used up that of ctx.
func (r *Reader) elsewhere(ctx context.Context, n *node, l *readConn, lost int, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*lookPatience)
	defer cancel()
	if serves, unknown := r.c.cluster.serves(ctx, n.addr); unknown != nil || serves {
		return err
	}
	l.forgotten(lost)
	return nil
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
