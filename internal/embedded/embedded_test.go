package embedded

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

func client(s *Server, dial func(context.Context, string, string) (net.Conn, error)) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.Addr(), Dialer: dial, DisableIdentity: true, MaxRetries: -1})
}

func start(t *testing.T) (*Server, *redis.Client) {
	t.Helper()
	s, err := Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := client(s, nil)
	t.Cleanup(func() {
		c.Close()
		s.Close()
	})
	return s, c
}

func TestKeysExpireInRealTime(t *testing.T) {
	_, c := start(t)
	if err := c.Set(t.Context(), "k", "v", 30*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(5 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for c.Exists(t.Context(), "k").Val() == 1 {
		if time.Now().After(deadline) {
			t.Fatal("the key did not expire")
		}
		<-tick.C
	}
}

func TestKeysExpireInFakeTime(t *testing.T) {
	wall := time.Now()
	synctest.Test(t, func(t *testing.T) {
		s := New()
		defer s.Close()
		c := client(s, s.Dial)
		defer c.Close()
		if err := c.Set(t.Context(), "k", "v", time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour - time.Second)
		if n := c.Exists(t.Context(), "k").Val(); n != 1 {
			t.Error("the key expired too early")
		}
		time.Sleep(2 * time.Second)
		if n := c.Exists(t.Context(), "k").Val(); n != 0 {
			t.Error("the key did not expire")
		}
	})
	if d := time.Since(wall); d > 30*time.Second {
		t.Errorf("took %v", d)
	}
}

func TestABlockedReadInFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		defer s.Close()
		c := client(s, s.Dial)
		defer c.Close()
		begin := time.Now()
		err := c.XRead(t.Context(), &redis.XReadArgs{Streams: []string{"s", "0"}, Block: 2 * time.Second}).Err()
		if err != redis.Nil || time.Since(begin) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// A pipeline longer than any buffer gets its replies.
func TestALongPipelineInFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		defer s.Close()
		c := client(s, s.Dial)
		defer c.Close()
		const n = 1000
		value, pipeline := strings.Repeat("x", 1000), c.Pipeline()
		for i := range n {
			pipeline.Set(t.Context(), fmt.Sprint(i), value, 0)
			pipeline.Get(t.Context(), fmt.Sprint(i))
		}
		begin := time.Now()
		replies, err := pipeline.Exec(t.Context())
		if err != nil || len(replies) != 2*n || time.Since(begin) != 0 {
			t.Errorf("%d replies, %v, after %v", len(replies), err, time.Since(begin))
		}
	})
}

func TestStartAddresses(t *testing.T) {
	s, err := Start(":0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	host, _, err := net.SplitHostPort(s.Addr())
	if err != nil || host != "127.0.0.1" {
		t.Errorf("address %s, %v", s.Addr(), err)
	}
	for _, addr := range []string{s.Addr(), "nonsense"} {
		if again, err := Start(addr); err == nil {
			again.Close()
			t.Errorf("%s was taken", addr)
		}
	}
}

func TestCutAllAndClose(t *testing.T) {
	s, c := start(t)
	read := func() <-chan error {
		done := make(chan error, 1)
		go func() {
			done <- c.XRead(t.Context(), &redis.XReadArgs{Streams: []string{"s", "0"}, Block: time.Minute}).Err()
		}()
		return done
	}
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	done := read()
	cut := func(err error) {
		t.Helper()
		if err == nil || err == redis.Nil {
			t.Errorf("the read ended with %v", err)
		}
	}
	for waiting := true; waiting; { // it may not have connected yet
		s.CutAll()
		select {
		case err := <-done:
			cut(err)
			waiting = false
		case <-time.After(5 * time.Millisecond):
		}
	}
	if v, err := c.Get(t.Context(), "k").Result(); v != "v" || err != nil {
		t.Errorf("after CutAll: %q, %v", v, err)
	}
	done = read()
	s.Close()
	cut(<-done)
	if _, err := s.Dial(t.Context(), "", ""); err == nil {
		t.Error("dialled a closed server")
	}
	s.Close()
}

func TestClientKill(t *testing.T) {
	s, c := start(t)
	victim := client(s, nil)
	defer victim.Close()
	conn := victim.Conn()
	defer conn.Close()
	id, err := conn.ClientID(t.Context()).Result()
	if err != nil || id <= 0 {
		t.Fatal(id, err)
	}
	if again := conn.ClientID(t.Context()).Val(); again != id {
		t.Errorf("IDs %d and %d of one connection", id, again)
	}
	if other := c.ClientID(t.Context()).Val(); other == id {
		t.Error("two connections have one ID")
	}
	c.XGroupCreateMkStream(t.Context(), "s", "g", "0")
	done := make(chan error, 1)
	go func() {
		done <- conn.XReadGroup(t.Context(), &redis.XReadGroupArgs{Group: "g", Consumer: "c", Streams: []string{"s", ">"}, Block: time.Minute}).Err()
	}()
	kill := func(id int64) int64 {
		t.Helper()
		n, err := c.ClientKillByFilter(t.Context(), "ID", fmt.Sprint(id)).Result()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := kill(id); n != 1 {
		t.Errorf("killed %d", n)
	}
	if err := <-done; err == nil || err == redis.Nil {
		t.Errorf("the killed read ended with %v", err)
	}
	c.XAdd(t.Context(), &redis.XAddArgs{Stream: "s", Values: []any{"a", "b"}})
	if n := c.XPending(t.Context(), "s", "g").Val().Count; n != 0 {
		t.Errorf("%d entries went to a killed connection", n)
	}
	if n := kill(1 << 40); n != 0 {
		t.Errorf("killed %d connections that are not there", n)
	}
}

// A key of a wrong type has one error for a reply, and what comes behind keeps its own.
func TestTheLengthOfAKeyThatIsNoStream(t *testing.T) {
	_, c := start(t)
	ctx := t.Context()
	c.RPush(ctx, "list", "x")
	c.XAdd(ctx, &redis.XAddArgs{Stream: "stream", Values: []any{"n", 1}})
	p := c.Pipeline()
	wrong, right, none := p.XLen(ctx, "list"), p.XLen(ctx, "stream"), p.XLen(ctx, "none")
	script := p.Eval(ctx, `return {redis.pcall('XLEN', 'list'), redis.call('XLEN', 'stream')}`, nil)
	if _, err := p.Exec(ctx); !redis.HasErrorPrefix(err, "WRONGTYPE") {
		t.Error(err)
	}
	if !redis.HasErrorPrefix(wrong.Err(), "WRONGTYPE") || right.Val() != 1 || none.Val() != 0 || none.Err() != nil {
		t.Errorf("%v, %v, %v", wrong, right, none)
	}
	if got, err := script.Slice(); err != nil || len(got) != 2 || got[1] != int64(1) {
		t.Errorf("in a script: %v, %v", got, err)
	}
}
