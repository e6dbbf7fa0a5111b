package faultproxy

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/redistest"
)

func TestBandwidth(t *testing.T) {
	p, c, direct := setup(t)
	c.Ping(t.Context())
	p.Bandwidth(100_000)
	begin := time.Now()
	if err := c.Set(t.Context(), "k", strings.Repeat("x", 10_000), 0).Err(); err != nil || time.Since(begin) < 100*time.Millisecond {
		t.Errorf("10 kB took %v (%v) at 100 kB/s, want at least 100ms", time.Since(begin), err)
	}
	p.Bandwidth(0)
	if n := direct.StrLen(t.Context(), "k").Val(); n != 10_000 {
		t.Errorf("%d bytes arrived, want 10000", n)
	}
}

func TestHoldRepliesCarriesOutRequests(t *testing.T) {
	p, c, direct := setup(t)
	c.Ping(t.Context())
	p.HoldReplies(true)
	got := make(chan int64, 1)
	go func() { got <- c.Incr(t.Context(), "k").Val() }()
	redistest.Eventually(t, "carried out", func() bool { return direct.Get(t.Context(), "k").Val() == "1" })
	select {
	case n := <-got:
		t.Errorf("answered %d while replies are held back", n)
	case <-time.After(50 * time.Millisecond):
	}
	p.HoldReplies(false)
	if n := <-got; n != 1 {
		t.Errorf("answered %d, want 1", n)
	}
}

// Neither side learns that the other one is gone, and new connections work.
func TestHalfOpen(t *testing.T) {
	p, _, direct := setup(t)
	old, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if _, err := old.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := old.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	p.HalfOpen()
	_, _ = old.Write([]byte("SET k gone\r\n"))
	if err := client(t, p.Addr(), 2).Set(t.Context(), "other", "here", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n := direct.Exists(t.Context(), "k").Val(); n != 0 {
		t.Error("what a half-open connection sent has arrived")
	}
	_ = old.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := old.Read(make([]byte, 100)); n > 0 || err == nil || !err.(net.Error).Timeout() {
		t.Errorf("the old connection got %d bytes, %v", n, err)
	}
	connected := direct.InfoMap(t.Context(), "clients").Item("Clients", "connected_clients")
	_ = old.Close()
	<-time.After(50 * time.Millisecond)
	if got := direct.InfoMap(t.Context(), "clients").Item("Clients", "connected_clients"); got != connected {
		t.Errorf("the server has %s clients, %s before the client closed", got, connected)
	}
}

func TestCloseEndsTheProxy(t *testing.T) {
	p, c, _ := setup(t)
	c.Ping(t.Context())
	p.Close()
	p.Close()
	if conn, err := net.Dial("tcp", p.Addr()); err == nil {
		conn.Close()
		t.Error("it still listens")
	}
	if err := c.Ping(t.Context()).Err(); err == nil {
		t.Error("a connection is still served")
	}
}
