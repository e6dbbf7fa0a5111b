package redistest

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/test/tier"
)

func TestStartAnswersAndOverrides(t *testing.T) {
	s := Start(t, "--requirepass", "secret", "--maxmemory", "50mb")
	o, err := redis.ParseURL(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	byURL := redis.NewClient(o)
	defer byURL.Close()
	if err := byURL.Ping(t.Context()).Err(); err != nil {
		t.Errorf("ping by URL: %v", err)
	}
	got := s.Client(t).ConfigGet(t.Context(), "maxmemory").Val()["maxmemory"]
	if want := "52428800"; got != want {
		t.Errorf("maxmemory = %s, want %s", got, want)
	}
	if !strings.Contains(s.Log(), "Ready to accept connections") {
		t.Errorf("log lacks the ready line:\n%s", s.Log())
	}
}

func TestLaunchLeavesNothing(t *testing.T) {
	tier.Server(t)
	s, stop, err := Launch("--appendonly", "yes")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Client(t).ConfigGet(t.Context(), "dir").Val()["dir"]; got != s.Dir() {
		t.Errorf("the directory is %q, want %q", got, s.Dir())
	}
	stop()
	if _, err := os.Stat(s.Dir()); !os.IsNotExist(err) || s.Running() {
		t.Errorf("after stop: running %v, its directory: %v", s.Running(), err)
	}
	if _, _, err := Launch("--no-such-setting", "1"); err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("a server that cannot start: %v", err)
	}
}

func TestRestartKeepsAppendOnlyFile(t *testing.T) {
	cases := []struct {
		name string
		end  func(*Server)
	}{{"after kill -9", (*Server).Kill}, {"after stop", (*Server).Stop}, {"while running", func(*Server) {}}}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s := Start(t, "--appendonly", "yes", "--appendfsync", "always")
			c, addr, pid := s.Client(t), s.Addr(), s.PID()
			c.Set(t.Context(), "k", "v", 0)
			tc.end(s)
			s.Restart()
			if got := c.Get(t.Context(), "k").Val(); got != "v" {
				t.Errorf("k = %q after restart, want v", got)
			}
			if s.Addr() != addr || s.PID() == pid {
				t.Errorf("addr %s pid %d, want addr %s and another pid than %d", s.Addr(), s.PID(), addr, pid)
			}
		})
	}
}

func TestKillRefusesConnections(t *testing.T) {
	s := Start(t)
	s.Kill()
	if conn, err := net.Dial("tcp", s.Addr()); err == nil {
		conn.Close()
		t.Error("a killed server still accepts connections")
	}
}

func TestFreezeAndThaw(t *testing.T) {
	s := Start(t)
	o := s.options()
	o.MaxRetries, o.ContextTimeoutEnabled = -1, true
	c := redis.NewClient(o)
	defer c.Close()
	c.Ping(t.Context())
	s.Freeze()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := c.Ping(ctx).Err(); !errors.Is(err, context.DeadlineExceeded) && !os.IsTimeout(err) {
		t.Errorf("ping of a frozen server: %v, want a timeout", err)
	}
	s.Thaw()
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Errorf("ping after thaw: %v", err)
	}
}

func TestReplicaPromoted(t *testing.T) {
	s := Start(t, "--requirepass", "secret")
	s.Client(t).Set(t.Context(), "k", "v", 0)
	r := s.Replica(t)
	rc := r.Client(t)
	if got := rc.Get(t.Context(), "k").Val(); got != "v" {
		t.Errorf("k on the replica = %q, want v", got)
	}
	if err := rc.Set(t.Context(), "k", "w", 0).Err(); err == nil {
		t.Error("a replica accepted a write")
	}
	s.Kill()
	r.Promote()
	if err := rc.Set(t.Context(), "k", "w", 0).Err(); err != nil {
		t.Errorf("write after promotion: %v", err)
	}
}

func TestLimitedDiskFailsWrites(t *testing.T) {
	s := StartLimited(t, 16, "--appendonly", "yes", "--appendfsync", "everysec")
	c := s.Client(t)
	value := strings.Repeat("x", 4096)
	failed := Within(Patience, func() bool {
		err := c.Append(t.Context(), "k", value).Err()
		return err != nil && strings.HasPrefix(err.Error(), "MISCONF")
	})
	if !failed {
		t.Errorf("no write failed with MISCONF past the limit\n%s", s.Log())
	}
}

func TestCounterCountsRequests(t *testing.T) {
	s := Start(t)
	counter := CountingDialer(nil)
	o := s.options()
	o.Dialer = counter.Dial
	c := redis.NewClient(o)
	defer c.Close()
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	counter.Reset()
	_, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for range 10 {
			p.XAdd(t.Context(), &redis.XAddArgs{Stream: "s", Values: []string{"data", strings.Repeat("*1\r\n", 100000)}})
		}
		p.XLen(t.Context(), "s")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Eval(t.Context(), "redis.call('SET', 'a', 1) return redis.call('GET', 'a')", nil)
	names := counter.ByName()
	if counter.Total() != 12 || names["XADD"] != 10 || names["XLEN"] != 1 || names["EVAL"] != 1 {
		t.Errorf("total %d by name %v, want 12: 10 XADD, 1 XLEN, 1 EVAL", counter.Total(), names)
	}
}

func TestRequestParserTakesAnyPieces(t *testing.T) {
	const requests = "*2\r\n$3\r\nget\r\n$5\r\n*1\r\n$\r\nPING\r\n*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nset\r\n$0\r\n\r\n$1\r\n\n\r\n"
	want := "GET PING PING SET"
	for size := 1; size <= len(requests); size++ {
		var names []string
		var p requestParser
		for at := 0; at < len(requests); at += size {
			p.feed([]byte(requests[at:min(at+size, len(requests))]), func(n string) { names = append(names, n) })
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("in pieces of %d: %q, want %q", size, got, want)
		}
	}
}
