package faultproxy

import (
	"io"
	"net"
	"sync/atomic"
)

// replies delivers the server's replies until it closes. The end of a client does not end that: the
// server may still have requests to execute, and must not block on a full connection.
func (c *conn) replies() {
	for {
		first, err := c.fromRds.Peek(1)
		if err != nil {
			break
		}
		if first[0] == '>' {
			err = copyFrames(c.toUser, c.fromRds, 1)
		} else {
			err = c.reply(c.nextExchange())
		}
		if err != nil {
			break
		}
	}
	_ = c.toUser.Flush()
	c.proxy.pass(c.cut)
	if c.vanished.Load() { // the client is not told
		select {
		case <-c.sentAll:
		case <-c.cut:
		}
	}
	c.close()
}

func (c *conn) nextExchange() *exchange {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 { // the server complains before it was asked: too many clients
		return &plain
	}
	x := c.waiting[0]
	c.waiting[0] = nil
	c.waiting = c.waiting[1:]
	return x
}

func (c *conn) reply(x *exchange) error {
	if x.raw {
		_, err := io.Copy(unbuffered{c.toUser}, c.fromRds)
		if err == nil {
			err = io.EOF
		}
		return err
	}
	if x.rule == nil {
		return copyFrames(c.toUser, c.fromRds, 1)
	}
	defer close(x.done)
	switch a := x.rule.action; a.kind {
	case closeAfter:
		return c.lose(x, func() { _ = c.client.Close() })
	case swallow:
		return c.lose(x, func() {})
	case reset:
		return copyFrames(io.Discard, c.fromRds, 1)
	case holdReply:
		return c.holdReply(x)
	case answer:
		if err := copyFrames(io.Discard, c.fromRds, 1); err != nil {
			return err
		}
		_, err := c.toUser.WriteString(a.reply)
		x.rule.fire()
		return err
	}
	return copyFrames(c.toUser, c.fromRds, 1)
}

// lose delivers the replies so far, drops this one and all that follow.
func (c *conn) lose(x *exchange, then func()) error {
	if err := c.toUser.Flush(); err != nil {
		return err
	}
	c.deliver.lost.Store(true)
	err := copyFrames(io.Discard, c.fromRds, 1)
	then()
	x.rule.fire()
	return err
}

func (c *conn) holdReply(x *exchange) error {
	if err := c.toUser.Flush(); err != nil {
		return err
	}
	x.rule.fire()
	select {
	case <-x.rule.action.until:
	case <-x.rule.release:
	case <-c.sentAll:
	case <-c.cut:
	}
	return copyFrames(c.toUser, c.fromRds, 1)
}

// delivery writes to the client; once that is gone, or is to hear nothing more, what is written vanishes.
type delivery struct {
	conn *conn
	lost atomic.Bool
}

func (d *delivery) Write(b []byte) (int, error) {
	c := d.conn
	if d.lost.Load() || !c.proxy.pass(c.cut) || !c.proxy.opened(&c.proxy.replies, c.cut) || !c.proxy.spend(len(b), c.cut) || c.vanished.Load() {
		return len(b), nil
	}
	if _, err := d.conn.client.Write(b); err != nil {
		d.lost.Store(true)
	}
	return len(b), nil
}

// gated writes to the server when traffic may pass.
type gated struct {
	conn   *conn
	server *net.TCPConn
}

func (g *gated) Write(b []byte) (int, error) {
	c := g.conn
	if !c.proxy.pass(c.cut) || !c.proxy.spend(len(b), c.cut) {
		return 0, net.ErrClosed
	}
	if c.vanished.Load() {
		return len(b), nil
	}
	return g.server.Write(b)
}

// flushing reads from a connection. Everything read before has been forwarded when it waits for more, so that no
// complete request or reply is kept back by an incomplete one behind it.
type flushing struct {
	from net.Conn
	to   interface{ Flush() error }
}

func (f *flushing) Read(b []byte) (int, error) {
	if err := f.to.Flush(); err != nil {
		return 0, err
	}
	return f.from.Read(b)
}

// unbuffered hides a writer's ReadFrom, for the reason given at copyBytes.
type unbuffered struct{ io.Writer }
