package redisconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// failoverClient is the address in the options of go-redis clients whose Dialer asks sentinels.
const failoverClient = "FailoverClient"

// dialEvery is how often such a Dialer is asked for the master, by dialing.
const dialEvery = 2 * time.Second

// masterTracker follows the master that the sentinels name, and closes connections to all other
// servers. An old master that was only slow, or cut off only from the sentinels, would go on to
// accept writes that are lost when it becomes a replica, and a pool keeps its connections for as
// long as they work. So a failover is detected by the next dial, or by asking the sentinels from
// time to time.
type masterTracker struct {
	find  func(ctx context.Context, network string) (net.Conn, string, error)
	where func(context.Context) (string, error)
	every time.Duration
	done  func() error // ends what find and where need

	mu     sync.Mutex
	at     string // "" until a master was found
	conns  map[*masterConn]struct{}
	stop   context.CancelFunc // ends watch, nil before it
	closed bool

	watching sync.WaitGroup
}

// newMasterTracker returns a client's tracker, nil if the server's address never changes.
func newMasterTracker(base *redis.Options, s *sentinels) *masterTracker {
	m := &masterTracker{conns: map[*masterConn]struct{}{}, every: sentinelEvery}
	switch {
	case s != nil:
		m.find, m.where, m.done = s.dial, s.where, s.close
	case base.Addr == failoverClient && base.Dialer != nil:
		dial := base.Dialer
		m.find = func(ctx context.Context, network string) (net.Conn, string, error) {
			conn, err := dial(ctx, network, failoverClient)
			if err != nil {
				return nil, "", fmt.Errorf("the failover client: %w", detach(err))
			}
			return conn, conn.RemoteAddr().String(), nil
		}
		m.where = func(ctx context.Context) (string, error) {
			conn, addr, err := m.find(ctx, "tcp")
			if err == nil {
				conn.Close()
			}
			return addr, err
		}
		m.every, m.done = dialEvery, func() error { return nil }
	default:
		return nil
	}
	return m
}

// open connects to the current master.
func (m *masterTracker) open(ctx context.Context, network, _ string) (net.Conn, error) {
	conn, addr, err := m.find(ctx, network)
	if err != nil {
		return nil, err
	}
	m.watch()
	m.moved(addr)
	c := &masterConn{Conn: conn, m: m, addr: addr}
	m.mu.Lock()
	stale := m.at != addr || m.closed
	if !stale {
		m.conns[c] = struct{}{}
	}
	m.mu.Unlock()
	if stale {
		conn.Close()
		return nil, fmt.Errorf("%s is not the master any more", addr)
	}
	if sys, ok := conn.(syscall.Conn); ok {
		return plainConn{c, sys}, nil
	}
	return opaqueConn{c}, nil
}

// moved stores the address of the master, and closes connections to all other servers.
func (m *masterTracker) moved(addr string) {
	m.mu.Lock()
	var old []*masterConn
	if m.at != addr {
		m.at = addr
		for c := range m.conns {
			if c.addr != addr {
				old = append(old, c)
			}
		}
	}
	m.mu.Unlock()
	for _, c := range old {
		c.Close()
	}
}

// watch asks the sentinels for the master until close.
func (m *masterTracker) watch() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stop != nil || m.closed {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	m.watching.Go(func() {
		ticker := time.NewTicker(m.every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			ask, cancel := context.WithTimeout(ctx, Patience)
			if addr, err := m.where(ask); err == nil && ctx.Err() == nil {
				m.moved(addr)
			}
			cancel()
		}
	})
}

// close ends watch. Connections are closed by their users.
func (m *masterTracker) close() error {
	m.mu.Lock()
	again := m.closed
	m.closed = true
	if m.stop != nil {
		m.stop()
	}
	m.mu.Unlock()
	if again {
		return nil
	}
	m.watching.Wait()
	return m.done()
}

// verifyRole ends a handshake by asking the server for its role, as sentinels may name the wrong
// master for a while. A server that forbids the question counts as one: a replica refuses writes.
func verifyRole(ctx context.Context, cn *redis.Conn) error {
	reply, err := cn.Do(ctx, "ROLE").Slice()
	if err != nil && !IsReply(err) {
		return err
	}
	if err == nil && len(reply) > 0 && reply[0] != "master" {
		// An error of a handshake loses one level of wrapping.
		return &dialError{&dialError{errNotMaster}}
	}
	return nil
}

var errNotMaster = errors.New("sentinels name a replica as the master: a failover is not over yet")

// A masterConn is a connection to a server that was the master when it was made. The
// types that embed it let go-redis see whether an idle connection was closed.
type masterConn struct {
	net.Conn
	m    *masterTracker
	addr string

	closed bool // guarded by m.mu
}

// Close closes the connection. A second call does nothing, as the pool does not know of the first.
func (c *masterConn) Close() error {
	c.m.mu.Lock()
	again := c.closed
	c.closed = true
	delete(c.m.conns, c)
	c.m.mu.Unlock()
	if again {
		return nil
	}
	return c.Conn.Close()
}

// A plainConn is a connection without TLS, which go-redis can check by a system call.
type plainConn struct {
	*masterConn
	syscall.Conn
}

// An opaqueConn is a connection with TLS: go-redis must not read its file descriptor, but must see
// that it was closed.
type opaqueConn struct{ *masterConn }

// SyscallConn returns a connection that shows nothing, or an error if it is closed.
func (c opaqueConn) SyscallConn() (syscall.RawConn, error) {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if c.closed {
		return nil, net.ErrClosed
	}
	return noSyscallConn{}, nil
}

// A noSyscallConn shows nothing.
type noSyscallConn struct{}

func (noSyscallConn) Control(func(uintptr)) error    { return nil }
func (noSyscallConn) Read(func(uintptr) bool) error  { return nil }
func (noSyscallConn) Write(func(uintptr) bool) error { return nil }
