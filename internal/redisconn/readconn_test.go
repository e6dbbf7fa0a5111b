package redisconn

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/embedded"

	"github.com/runnel-go/runnel/internal/test/servers"
)

// A heldConn is half-open: broken for the client, unnoticed by the server.
type heldConn struct {
	net.Conn
	held <-chan struct{}
}

func (c heldConn) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func (c heldConn) Close() error {
	go func() {
		<-c.held
		c.Conn.Close()
	}()
	return nil
}

func TestABrokenHandshakeSentNothing(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		dial := redis.NewDialer(&redis.Options{})
		shared := redis.NewClient(&redis.Options{Addr: e.addr, Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := dial(ctx, network, addr)
			return servers.DeafConn{Conn: nc}, err
		}})
		defer shared.Close()
		c, err := Open(Options{Redis: shared, Keys: example})
		e.must(err)
		defer c.Close()
		r := c.NewReader()
		defer r.Close()
		_, err = r.Read(e.ctx(), "g", "c", []string{"log"}, 1, 0)
		if err == nil || errors.Is(err, ErrUnknownOutcome) {
			t.Errorf("got %v", err)
		}
		e.must(r.Kill(e.ctx()))
	})
}

// A slowConn delivers 16 bytes every 600 ms while slow is set.
type slowConn struct {
	net.Conn
	slow *atomic.Bool
}

func (c *slowConn) Read(b []byte) (int, error) {
	if c.slow.Load() {
		time.Sleep(600 * time.Millisecond)
		b = b[:min(len(b), 16)]
	}
	return c.Conn.Read(b)
}

func TestALongReplyIsAwaitedWhileItKeepsComing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := embedded.New()
		defer s.Close()
		slow := new(atomic.Bool)
		shared := redis.NewClient(&redis.Options{Addr: s.Addr(), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := s.Dial(ctx, network, addr)
			return &slowConn{nc, slow}, err
		}})
		defer shared.Close()
		c, err := Open(Options{Redis: shared, Keys: example})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		e := &env{Conn: c, t: t, raw: c.Retrying}
		p := "__strm:example.orders.0"
		e.own(p)
		id := e.add(p, "1-1")
		r := c.NewReader()
		defer r.Close()
		_, err = r.History(t.Context(), group, "c", p, "0-0", 1)
		e.must(err)
		slow.Store(true)
		begin := time.Now()
		got, err := r.Read(t.Context(), group, "c", []string{p}, 1, 0)
		e.must(err)
		equal(t, "entries", ids(got[0].Entries), []string{id})
		if d := time.Since(begin); d < 2*readMargin {
			t.Errorf("the reply took only %v", d)
		}
	})
}

// A farConn is half a second away, and loses all requests while lost is set.
type farConn struct {
	net.Conn
	lost *atomic.Bool
}

func (c farConn) Write(b []byte) (int, error) {
	if c.lost.Load() {
		return len(b), nil
	}
	time.Sleep(500 * time.Millisecond)
	return c.Conn.Write(b)
}

// Reads come about over a long way: a connection has its own time to come about, and no reply is awaited longer for that.
func TestAConnectionOverALongWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := embedded.New()
		defer s.Close()
		lost := new(atomic.Bool)
		far := redis.NewClient(&redis.Options{Addr: s.Addr(), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := s.Dial(ctx, network, addr)
			return farConn{nc, lost}, err
		}})
		defer far.Close()
		c, err := Open(Options{Redis: far, Keys: example})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		r := c.NewReader()
		defer r.Close()
		if _, err := r.Follow(t.Context(), []string{"log"}, []string{"$"}, 1, 0); err != nil {
			t.Fatalf("the first read: %v", err)
		}
		begin := time.Now()
		lost.Store(true)
		_, err = r.Follow(t.Context(), []string{"log"}, []string{"$"}, 1, 0)
		if took := time.Since(begin); err == nil || took != readMargin {
			t.Errorf("a read without a reply: %v after %v", err, took)
		}
	})
}
