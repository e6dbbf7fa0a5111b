package runneltest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// network is how one worker reaches Redis: connections as a kernel keeps them.
// What was written leaves the process at once and is delivered when the network
// lets it through, though the connection be closed meanwhile; what arrives waits
// to be read.
type network struct {
	dial    dialer
	latency time.Duration // the longest that each way takes

	mu     sync.Mutex
	conns  map[*conn]struct{}
	frozen int // how many freezes are under way
	thawed chan struct{}
	dead   bool
	pumps  sync.WaitGroup
}

func newNetwork(dial dialer, latency time.Duration) *network {
	return &network{dial: dial, latency: latency, conns: map[*conn]struct{}{}}
}

// travel takes as long as one way does.
func (n *network) travel() {
	if n.latency > 0 {
		time.Sleep(rand.N(n.latency))
	}
}

// Dial fits redis.Options.Dialer.
func (n *network) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	n.mu.Lock()
	for n.frozen > 0 && !n.dead {
		thawed := n.thawed
		n.mu.Unlock()
		select {
		case <-thawed:
		case <-ctx.Done():
			return nil, &net.OpError{Op: "dial", Net: network, Err: os.ErrDeadlineExceeded}
		}
		n.mu.Lock()
	}
	defer n.mu.Unlock()
	if n.dead {
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	pipe, err := n.dial(ctx, network, addr)
	if err != nil {
		return nil, fmt.Errorf("dial the embedded server: %w", err)
	}
	c := &conn{Conn: pipe, n: n}
	c.changed.L = &c.mu
	n.conns[c] = struct{}{}
	n.pumps.Go(c.receive)
	n.pumps.Go(c.arrive)
	n.pumps.Go(c.deliver)
	return c, nil
}

// freeze lets nothing through, either way, until thaw.
func (n *network) freeze() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.frozen++; n.frozen == 1 && !n.dead {
		n.thawed = make(chan struct{})
		n.setFrozen(true)
	}
}

func (n *network) thaw() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.frozen--; n.frozen == 0 && !n.dead {
		close(n.thawed)
		n.setFrozen(false)
	}
}

// setFrozen tells every connection; n.mu is held.
func (n *network) setFrozen(frozen bool) {
	for c := range n.conns {
		c.set(func() { c.frozen = frozen })
	}
}

// cut resets every connection: what is on its way is lost. With forEver there
// will be no others.
func (n *network) cut(forEver bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if forEver && !n.dead {
		n.dead = true
		if n.frozen > 0 {
			close(n.thawed)
		}
	}
	for c := range n.conns {
		c.reset(os.NewSyscallError("read", syscall.ECONNRESET))
	}
}

// wait returns when the connections that were cut or closed are gone.
func (n *network) wait() { n.pumps.Wait() }

func (n *network) forget(c *conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, c)
}

// conn is the worker's end of a connection.
type conn struct {
	net.Conn // to the server
	n        *network

	mu       sync.Mutex
	changed  sync.Cond // of mu
	way      []byte    // on its way to us
	wayErr   error     // and behind that no more
	in, out  []byte
	err      error // no more comes in
	closed   bool  // by the worker
	frozen   bool
	deadline time.Time
	timer    *time.Timer // wakes at deadline
}

func (c *conn) set(fn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fn()
	c.changed.Broadcast()
}

// receive takes what the server writes, at once: the embedded server may write while it
// holds the mutex that all others wait for, and time does not pass in a bubble while a
// goroutine waits for a mutex.
func (c *conn) receive() {
	buf := make([]byte, 16<<10)
	for {
		n, err := c.Conn.Read(buf)
		c.set(func() {
			c.way = append(c.way, buf[:n]...)
			c.wayErr = err
		})
		if err != nil {
			return
		}
	}
}

// arrive lets what the server wrote come in when it has travelled.
func (c *conn) arrive() {
	defer c.n.forget(c)
	for {
		c.mu.Lock()
		for len(c.way) == 0 && c.wayErr == nil {
			c.changed.Wait()
		}
		way, err := c.way, c.wayErr
		c.way = nil
		c.mu.Unlock()
		c.n.travel()
		c.set(func() {
			if c.err != nil {
				return
			}
			c.in = append(c.in, way...)
			c.err = err
		})
		if err != nil {
			return
		}
	}
}

// deliver hands the server what was written.
func (c *conn) deliver() {
	defer c.Conn.Close()
	for {
		c.await()
		c.n.travel()
		c.mu.Lock()
		for c.err == nil && (c.frozen || len(c.out) == 0 && !c.closed) {
			c.changed.Wait()
		}
		out := c.out
		c.out = nil
		over := c.err != nil || len(out) == 0
		c.mu.Unlock()
		if over {
			return
		}
		if _, err := c.Conn.Write(out); err != nil {
			return
		}
	}
}

// await waits until there is something to deliver.
func (c *conn) await() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.err == nil && len(c.out) == 0 && !c.closed {
		c.changed.Wait()
	}
}

func (c *conn) reset(err error) {
	c.set(func() { c.err, c.in, c.out = err, nil, nil })
	c.Conn.Close()
}

func (c *conn) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case c.closed:
			return 0, net.ErrClosed
		case !c.deadline.IsZero() && !time.Now().Before(c.deadline):
			return 0, os.ErrDeadlineExceeded
		case len(c.in) > 0 && !c.frozen:
			n := copy(b, c.in)
			c.in = c.in[n:]
			return n, nil
		case c.err == io.EOF && c.frozen: // the end has not arrived yet
		case c.err != nil:
			return 0, c.err
		}
		c.changed.Wait()
	}
}

func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return 0, net.ErrClosed
	case c.err != nil:
		return 0, c.err
	}
	c.out = append(c.out, b...)
	c.changed.Broadcast()
	return len(b), nil
}

func (c *conn) Close() error {
	c.set(func() {
		c.closed = true
		if c.timer != nil {
			c.timer.Stop()
		}
	})
	return nil
}

func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetWriteDeadline does nothing: writes do not wait.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	switch {
	case t.IsZero():
		if c.timer != nil {
			c.timer.Stop()
		}
	case c.timer == nil:
		c.timer = time.AfterFunc(time.Until(t), func() { c.set(func() {}) })
	default:
		c.timer.Reset(time.Until(t))
	}
	return nil
}
