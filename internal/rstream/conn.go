package rstream

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// conn is a Reader's connection. It knows whether a command went out, and waits
// for the rest of a reply as long as parts of it keep coming.
type conn struct {
	net.Conn
	r *Reader

	// Guarded by r.mu.
	id     int64 // CLIENT ID, 0 when the server does not tell it
	ready  bool  // the handshake is over
	sent   bool  // the current command went out, or a part of it
	closed bool  // by Interrupt
}

func (c *conn) Write(b []byte) (int, error) {
	c.r.mu.Lock()
	c.r.cur = c
	c.r.mu.Unlock()
	n, err := c.Conn.Write(b)
	if n > 0 {
		c.r.mu.Lock()
		c.sent = c.ready
		c.r.mu.Unlock()
	}
	return n, err
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.Conn.SetReadDeadline(time.Now().Add(readMargin))
	}
	return n, err
}

// cut closes the connection under whoever reads from it.
func (c *conn) cut() {
	c.r.mu.Lock()
	c.closed = true
	c.r.mu.Unlock()
	c.Conn.Close()
}

// identify is the last step of a handshake.
func (r *Reader) identify(ctx context.Context, cn *redis.Conn) error {
	id, err := cn.ClientID(ctx).Result()
	if err != nil && !isReply(err) {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cur == nil {
		return errors.New("handshake without a connection")
	}
	r.cur.id, r.cur.ready = id, true
	return nil
}

// begin notes that a command is about to be sent.
func (r *Reader) begin(consumes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reading, r.consumes = true, consumes
	if r.cur != nil {
		r.cur.sent = false
	}
}

// end notes that the command ended, and drops the connection of one that got no
// reply. It returns whether the command went out, and whether its connection was
// closed by Interrupt.
func (r *Reader) end(err error, consumes bool) (sent, cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reading = false
	if err == nil || isReply(err) || r.cur == nil {
		return false, false
	}
	cur := r.cur
	r.cur = nil
	cur.Conn.Close()
	if cur.sent && consumes {
		if cur.id == 0 {
			r.nameless = true
		} else {
			r.lost = append(r.lost, cur.id)
		}
	}
	return cur.sent, cur.closed
}
