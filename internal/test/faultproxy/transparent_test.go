package faultproxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/test/redistest"
)

func TestTransparentForLargePayloads(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			p, _, direct := setup(t)
			c := client(t, p.Addr(), protocol)
			values := map[string]string{}
			for i, size := range []int{0, 1, headSize - 20, headSize, headSize + 1, bufferSize, 5<<20 + 3} {
				values[fmt.Sprint("k", i)] = strings.Repeat("\r\n$1*", size/5+1)[:size]
			}
			_, err := c.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
				for k, v := range values {
					pipe.Set(t.Context(), k, v, 0)
					pipe.Get(t.Context(), k)
					pipe.Eval(t.Context(), "return {1, {ARGV[1], false}, {}}", nil, v)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for k, want := range values {
				if got := direct.Get(t.Context(), k).Val(); got != want {
					t.Errorf("%s on the server has %d bytes, want %d equal ones", k, len(got), len(want))
				}
				if got := c.Get(t.Context(), k).Val(); got != want {
					t.Errorf("%s through the proxy has %d bytes, want %d equal ones", k, len(got), len(want))
				}
			}
		})
	}
}

func TestClientIDMeansTheConnectionBehind(t *testing.T) {
	p, c, direct := setup(t)
	conn := c.Conn()
	defer conn.Close()
	id := conn.ClientID(t.Context()).Val()
	result := make(chan error, 1)
	go func() { result <- conn.BLPop(t.Context(), limit, "list").Err() }()
	redistest.Eventually(t, "unblocked by ID", func() bool { return direct.ClientUnblock(t.Context(), id).Val() == 1 })
	if err := <-result; err != redis.Nil {
		t.Errorf("unblocked BLPOP: %v, want redis.Nil", err)
	}
	direct.Do(t.Context(), "CLIENT", "KILL", "ID", id)
	redistest.Eventually(t, "the killed connection is closed", func() bool { return conn.Ping(t.Context()).Err() != nil })
	if p.Hits("BLPOP") != 1 {
		t.Errorf("hits of BLPOP = %d, want 1", p.Hits("BLPOP"))
	}
}

func TestClosedClientLeavesTheServer(t *testing.T) {
	p, c, direct := setup(t)
	result := make(chan error, 1)
	go func() { result <- c.BLPop(t.Context(), limit, "list").Err() }()
	blocked := func(want string) func() bool {
		return func() bool { return direct.InfoMap(t.Context(), "clients").Item("Clients", "blocked_clients") == want }
	}
	redistest.Eventually(t, "blocked", blocked("1"))
	p.CutAll()
	if err := <-result; err == nil {
		t.Error("BLPOP survived the cut")
	}
	redistest.Eventually(t, "gone from the server", blocked("0"))
}

func TestPauseKeepsEverythingBack(t *testing.T) {
	p, c, direct := setup(t)
	c.Ping(t.Context())
	p.Pause()
	held := begun(func() error { return c.Incr(t.Context(), "k").Err() })
	fresh := client(t, p.Addr(), 2)
	first := begun(func() error { return fresh.Ping(t.Context()).Err() })
	unanswered(t, held)
	unanswered(t, first)
	if n := direct.Exists(t.Context(), "k").Val(); n != 0 {
		t.Error("the request reached the server while paused")
	}
	p.Resume()
	for _, result := range []<-chan error{held, first} {
		if err := <-result; err != nil {
			t.Errorf("after resume: %v", err)
		}
	}
	if got := direct.Get(t.Context(), "k").Val(); got != "1" {
		t.Errorf("k is %q", got)
	}
}

func TestLatency(t *testing.T) {
	p, c, _ := setup(t)
	c.Ping(t.Context())
	p.Latency(20 * time.Millisecond)
	begin := time.Now()
	if err := c.Ping(t.Context()).Err(); err != nil || time.Since(begin) < 40*time.Millisecond {
		t.Errorf("ping took %v (%v), want at least 40ms", time.Since(begin), err)
	}
}

func TestEveryAndOrderOfRules(t *testing.T) {
	p, c, direct := setup(t)
	p.On("INCR", 2).Do(Answer(":100\r\n"))
	p.On("INCR", Every).Do(Answer(":200\r\n"))
	for i, want := range []int64{200, 100, 200} {
		if got := c.Incr(t.Context(), "k").Val(); got != want {
			t.Errorf("INCR %d = %d, want %d", i+1, got, want)
		}
	}
	if n := direct.Exists(t.Context(), "k").Val(); n != 0 {
		t.Error("an answered request was carried out")
	}
}

func TestReplicationPassesAndCanFallBehind(t *testing.T) {
	s := redistest.Start(t)
	p := Start(t, s.Addr())
	s.Client(t).Set(t.Context(), "k", "1", 0)
	r := s.ReplicaVia(t, p.Addr())
	rc := r.Client(t)
	p.Pause()
	s.Client(t).Set(t.Context(), "k", "2", 0)
	r.Promote()
	if got := rc.Get(t.Context(), "k").Val(); got != "1" {
		t.Errorf("k on the replica that is behind = %q, want 1", got)
	}
}

func TestSubscriptionsAndInlineCommandsPass(t *testing.T) {
	p, c, direct := setup(t)
	sub := c.Subscribe(t.Context(), "news")
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	direct.Publish(t.Context(), "news", "hello")
	if m, err := sub.ReceiveMessage(t.Context()); err != nil || m.Payload != "hello" {
		t.Errorf("received %v, %v, want hello", m, err)
	}
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "PING\r\n\r\n*0\r\n*1\r\n$4\r\nPING\r\n*1\r\n:oops\r\n")
	got, _ := io.ReadAll(bufio.NewReader(conn))
	if want := "+PONG\r\n+PONG\r\n-ERR Protocol error"; !strings.HasPrefix(string(got), want) {
		t.Errorf("answers %q, want %q…", got, want)
	}
}
