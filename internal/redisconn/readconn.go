package redisconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// A readConn is a Reader's way to one server: one connection, made when it is needed and
// again when it breaks. One goroutine may run commands at a time.
type readConn struct {
	c       *Conn
	rdb     *redis.Client
	control *redis.Client // of the same server, to end what the connection does
	tail    bool          // commands have no effect, and end with their contexts
	release func()        // of the last command's context; only the goroutine that runs commands uses it
	made    *atomic.Int64 // connections
	most    atomic.Int64  // a time.Duration: what the last command has, once it is connected

	mu       sync.Mutex
	cur      *trackedConn // the connection last written to
	reading  bool
	consumes bool     // that read takes entries from a group
	ended    bool     // the context of the command has ended: it sends no more
	lost     []connID // connections that may still execute a read
	nameless bool     // one of them has no ID
}

// newReadConn returns a connection to one server, without any I/O.
func newReadConn(c *Conn, addr string, control *redis.Client, tail bool, made *atomic.Int64) *readConn {
	l := &readConn{c: c, control: control, tail: tail, release: func() {}, made: made}
	o := c.options(-1)
	o.Addr = addr
	o.PoolSize = 1
	o.ReadBufferSize = readBuffer
	o.ConnMaxIdleTime = idleConn
	if tail {
		o.ConnMaxIdleTime = -1 // one of its reads may take as long
	}
	dial := o.Dialer
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		l.made.Add(1)
		return &trackedConn{Conn: nc, l: l}, nil
	}
	o.OnConnect = inTurn(o.OnConnect, l.handshake)
	l.rdb = redis.NewClient(o)
	l.rdb.AddHook(redactHook{})
	return l
}

// run runs one command under a timeout of its own and classifies its error. If the outcome of a command
// that consumes is unknown, run keeps the connection's ID for kill. The end of ctx ends a tail's command only.
func (l *readConn) run(ctx context.Context, block time.Duration, consumes bool, command func(context.Context) error) error {
	if !l.tail {
		ctx = context.WithoutCancel(ctx)
	}
	for try := 1; ; try++ {
		l.begin(consumes)
		err := l.within(ctx, block+readMargin, command)
		sent, cut := l.end(err, consumes)
		switch {
		case err == nil || errors.Is(err, redis.Nil):
			return nil
		case ReplyHas(err, "NOGROUP", "WRONGTYPE", "UNBLOCKED"):
			return WithSentinel(ErrNoGroup, err)
		case IsReply(err):
			return err
		case sent:
			return WithSentinel(ErrUnknownOutcome, err)
		case cut && try == 1 && ctx.Err() == nil:
			continue // an interruption hit the connection between two reads, or at the end of the last one
		}
		return err
	}
}

// within runs a command until it ends, the time is over or, for a tail, ctx ends. A connection that it needs first has
// connectMargin on top.
func (l *readConn) within(ctx context.Context, most time.Duration, command func(context.Context) error) error {
	// The connection gets no deadline from ctx: it would pass before the end of ctx is seen.
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), most+connectMargin)
	l.most.Store(int64(most))
	l.release() // and not when a command ends: what it has brought is waited for
	l.release = cancel
	if !l.tail {
		return command(limited)
	}
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(over)
		cancel()
		l.cutOff(errors.Is(context.Cause(ctx), errWoken))
	})
	err := command(limited)
	if !stop() {
		<-over // it would hit the next command
	}
	return err
}

// cutOff ends a tail's command: nothing more is sent for it, and the connection on which it waits is closed. If it
// was only woken, a reply that has begun is received to its end.
//
//  1. A connection that is dialed, or in its handshake, has not sent the command: ended keeps it from that.
//  2. On a connection that has sent it, cur finds it.
func (l *readConn) cutOff(woken bool) {
	l.mu.Lock()
	l.ended = true
	cur := l.cur
	if cur != nil && woken && cur.answered {
		cur = nil
	}
	l.mu.Unlock()
	if cur != nil {
		cur.closeNow()
	}
}

// errEnded is the error of a command that was not sent, as its context ended before.
var errEnded = &dialError{errors.New("the read is over")}

// interrupt is Reader.Interrupt for this connection.
func (l *readConn) interrupt(ctx context.Context) error {
	l.mu.Lock()
	cur, reading, consumes := l.cur, l.reading, l.consumes
	var id int64
	if cur != nil {
		id = cur.id.number
		reading = reading && cur.ready // during the handshake no read has been sent
	}
	l.mu.Unlock()
	if cur == nil || !reading {
		return nil
	}
	if id != 0 && l.c.CanUnblock() {
		err := unblock(ctx, l.control, id)
		if err == nil {
			return nil
		}
		if !IsReply(err) {
			return fmt.Errorf("unblock a read: %w", err)
		}
		l.c.cannotUnblock.Store(true)
	}
	if consumes && !l.c.CanKill() {
		return nil
	}
	cur.closeNow()
	return nil
}

// unblock has a blocked read of a connection return without a result. While the server pauses writes,
// as before a failover that is asked for, a read is held back until the end of the pause, and Redis 7.0
// and 8.0 and Valkey 8.1 panic when CLIENT UNBLOCK hits it then. A script is held back, too, and with it
// what comes behind it in the same packet.
func unblock(ctx context.Context, rdb *redis.Client, id int64) error {
	pipe := rdb.Pipeline()
	pipe.Eval(ctx, "return 1", nil)
	unblocked := pipe.ClientUnblock(ctx, id)
	_, _ = pipe.Exec(ctx)
	return unblocked.Err()
}

// kill is Reader.Kill for this connection.
func (l *readConn) kill(ctx context.Context) error {
	l.mu.Lock()
	lost, nameless := l.lost, l.nameless
	l.mu.Unlock()
	if nameless {
		l.c.cannotKill.Store(true)
		return ErrCannotKill
	}
	for _, id := range lost {
		// Both replies, 0 (it had ended) and 1, are fine.
		err := l.control.ClientKillByFilter(ctx, id.kill()...).Err()
		if IsReply(err) {
			l.c.cannotKill.Store(true)
			return WithSentinel(ErrCannotKill, err)
		}
		if err != nil {
			return fmt.Errorf("end a read: %w", err)
		}
	}
	l.forgotten(len(lost))
	return nil
}

// forgotten removes the first n reads of unknown outcome, which cannot be executed any
// more.
func (l *readConn) forgotten(n int) {
	l.mu.Lock()
	l.lost = l.lost[n:]
	l.mu.Unlock()
}

// trackedConn is a Reader's connection. It knows whether a command went out, and waits
// for the rest of a reply as long as parts of it keep coming.
type trackedConn struct {
	net.Conn
	l *readConn

	// Guarded by l.mu.
	id       connID
	ready    bool // the handshake is over
	sent     bool // the current command went out, or a part of it
	answered bool // a part of a reply came since something was sent
	closed   bool // by Interrupt, or with the end of a tail's context
}

func (c *trackedConn) Write(b []byte) (int, error) {
	c.l.mu.Lock()
	if c.l.ended {
		c.l.mu.Unlock()
		return 0, errEnded
	}
	c.l.cur, c.answered = c, false
	c.l.mu.Unlock()
	n, err := c.Conn.Write(b)
	if n > 0 {
		c.l.mu.Lock()
		c.sent = c.ready || c.l.tail
		c.l.mu.Unlock()
	}
	return n, err
}

// SetReadDeadline keeps the time that a connection takes to come about from those who wait for a reply over it.
func (c *trackedConn) SetReadDeadline(at time.Time) error {
	if latest := time.Now().Add(time.Duration(c.l.most.Load())); at.IsZero() || at.After(latest) {
		at = latest
	}
	return c.Conn.SetReadDeadline(at)
}

func (c *trackedConn) Read(b []byte) (int, error) {
	c.l.mu.Lock()
	answered := c.answered
	c.l.mu.Unlock()
	if answered { // and not behind each part: most replies have one
		c.Conn.SetReadDeadline(time.Now().Add(readMargin))
	}
	n, err := c.Conn.Read(b)
	if n > 0 && !answered {
		c.l.mu.Lock()
		c.answered = true
		c.l.mu.Unlock()
	}
	return n, err
}

// closeNow closes the connection; a read under way fails.
func (c *trackedConn) closeNow() {
	c.l.mu.Lock()
	c.closed = true
	c.l.mu.Unlock()
	c.Conn.Close()
}

// handshake is the last step of a handshake.
func (l *readConn) handshake(ctx context.Context, cn *redis.Conn) error {
	if l.tail {
		return nil // nobody has to end its reads on the server
	}
	id, err := identityOf(ctx, cn)
	if err != nil && !IsReply(err) {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur == nil {
		return errors.New("handshake without a connection")
	}
	l.cur.id, l.cur.ready = id, true
	return nil
}

// A connID names a connection of a server. A restarted server, or another one in its
// place, may reuse the number: the client address distinguishes them.
type connID struct {
	number int64  // CLIENT ID, 0 if the server does not report it
	addr   string // "" if the server does not report it
}

// identityOf asks the server which connection this is.
func identityOf(ctx context.Context, cn *redis.Conn) (id connID, err error) {
	info, err := cn.Do(ctx, "CLIENT", "INFO").Text()
	if err != nil && !IsReply(err) {
		return id, err
	}
	for field := range strings.FieldsSeq(info) {
		if addr, ok := strings.CutPrefix(field, "addr="); ok {
			id.addr = addr
		}
		if number, ok := strings.CutPrefix(field, "id="); ok {
			id.number, _ = strconv.ParseInt(number, 10, 64)
		}
	}
	if id.number == 0 { // the server, or the user's rights, tell this alone
		id.number, err = cn.ClientID(ctx).Result()
	}
	return id, err
}

// kill returns the filter of CLIENT KILL for the connection.
func (id connID) kill() []string {
	filter := []string{"ID", strconv.FormatInt(id.number, 10)}
	if id.addr != "" {
		filter = append(filter, "ADDR", id.addr)
	}
	return filter
}

// begin marks that a command is about to be sent.
func (l *readConn) begin(consumes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reading, l.consumes, l.ended = true, consumes, false
	if l.cur != nil {
		l.cur.sent = false
	}
}

// end marks the end of the command, and drops the connection if there was no reply. It
// reports whether the command was sent, and whether its connection was closed on purpose.
func (l *readConn) end(err error, consumes bool) (sent, cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reading, l.ended = false, false
	if err == nil || IsReply(err) || l.cur == nil {
		return false, false
	}
	cur := l.cur
	cut = cur.closed
	l.cur = nil
	if l.tail { // go-redis may keep the connection, if it has seen the end of the context only
		cur.closed, l.cur = true, cur
	}
	cur.Conn.Close()
	if cur.sent && consumes {
		if cur.id.number == 0 {
			l.nameless = true
		} else {
			l.lost = append(l.lost, cur.id)
		}
	}
	return cur.sent, cut
}
