// Package embedded is a Redis server inside this process, for --dev and tests.
//
// It is miniredis with a clock that ticks: keys expire as time passes, and in a
// testing/synctest bubble as fake time passes. On top of what miniredis knows it
// answers CLIENT ID and CLIENT KILL ID, so that a client that lost the reply of a read
// can make sure that the read is over. Its data is gone when it is closed.
package embedded

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/alicebob/miniredis/v2"
)

// A Server is an embedded Redis server. Its methods may be called concurrently.
type Server struct {
	mini *miniredis.Miniredis
	peers
	listener net.Listener
	accept   sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{} // the server's ends
	shut  bool
}

// New returns a server without a listener, reached through Dial. Called inside
// a synctest bubble, its clock is the bubble's.
func New() *Server {
	s := &Server{mini: miniredis.NewMiniRedis(), conns: map[net.Conn]struct{}{}}
	s.mini.ClockTTL(true)
	// The first Dial of a miniredis makes its server; this one is not used.
	if c, err := s.mini.Dial(); err == nil {
		c.Close()
	}
	s.answerClient()
	return s
}

// Start returns a server that listens on a TCP address: "127.0.0.1:6379", or
// ":0" for a free port of the loopback interface.
func Start(addr string) (*Server, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("embedded redis: address %q: %w", addr, err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port))
	if err != nil {
		return nil, fmt.Errorf("embedded redis: %w", err)
	}
	s := New()
	s.listener = l
	s.accept.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.serve(c)
		}
	})
	return s, nil
}

// Addr returns the address that the server listens on, or "127.0.0.1:0" for
// one without a listener: an address that no resolver is asked for.
func (s *Server) Addr() string {
	if s.listener == nil {
		return "127.0.0.1:0"
	}
	return s.listener.Addr().String()
}

// Dial returns a connection to the server over a pipe; it fits
// redis.Options.Dialer. Network and address are ignored.
func (s *Server) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	client, server := pipe()
	if !s.serve(server) {
		client.Close()
		return nil, fmt.Errorf("embedded redis: %w", net.ErrClosed)
	}
	return client, nil
}

// CutAll closes every connection; new ones are served.
func (s *Server) CutAll() {
	s.mu.Lock()
	conns := s.conns
	s.conns = map[net.Conn]struct{}{}
	s.mu.Unlock()
	for c := range conns {
		c.Close()
	}
}

// Close ends the listener and every connection, and waits until they ended.
func (s *Server) Close() {
	s.mu.Lock()
	s.shut = true
	s.mu.Unlock()
	if s.listener != nil {
		s.listener.Close()
		s.accept.Wait()
	}
	s.CutAll()
	s.mini.Close()
}

func (s *Server) serve(c net.Conn) bool {
	t := &tracked{Conn: c, s: s}
	s.mu.Lock()
	if s.shut {
		s.mu.Unlock()
		c.Close()
		return false
	}
	s.conns[t] = struct{}{}
	s.mini.Server().ServeConn(t) // under the lock, so that Close finds the server's goroutine
	s.mu.Unlock()
	return true
}

// tracked forgets itself when the server closes it.
type tracked struct {
	net.Conn
	s *Server
}

func (t *tracked) Close() error {
	t.s.mu.Lock()
	delete(t.s.conns, t)
	t.s.mu.Unlock()
	return t.Conn.Close()
}
