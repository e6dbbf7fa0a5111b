package faultproxy

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/runnel-go/runnel/internal/test/redistest"
)

const limit = 10 * time.Second

// client dials the proxy once per call that needs a connection, and never repeats a command.
func client(t *testing.T, addr string, protocol int) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{
		Addr: addr, Protocol: protocol, MaxRetries: -1, ReadTimeout: limit, DisableIdentity: true, PoolSize: 1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func setup(t *testing.T) (*Proxy, *redis.Client, *redis.Client) {
	t.Helper()
	s := redistest.Start(t)
	p := Start(t, s.Addr())
	return p, client(t, p.Addr(), 3), s.Client(t)
}

// begun makes a request, and returns where its error comes.
func begun(request func() error) <-chan error {
	result := make(chan error, 1)
	go func() { result <- request() }()
	return result
}

// unanswered fails the test if an answer comes soon.
func unanswered(t *testing.T, result <-chan error) {
	t.Helper()
	select {
	case err := <-result:
		t.Fatalf("it ended: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
}

func TestActionsOnOneRequest(t *testing.T) {
	cases := []struct {
		name    string
		action  Action
		carried bool // the request reached the server
		fails   bool // the client sees an error
		silent  bool // it sees nothing
	}{
		{"close before", CloseBefore, false, true, false},
		{"close after", CloseAfter, true, true, false},
		{"reset", Reset, true, true, false},
		{"swallow", Swallow, true, true, true},
		{"delay", Delay(20 * time.Millisecond), true, false, false},
		{"answer", Answer("-LOADING wait\r\n"), false, true, false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			p, c, direct := setup(t)
			rule := p.On("INCR", 2).Do(tc.action)
			if err := c.Incr(t.Context(), "k").Err(); err != nil {
				t.Fatalf("first INCR: %v", err)
			}
			second := begun(func() error { return c.Incr(t.Context(), "k").Err() })
			rule.Wait(t)
			if tc.silent {
				unanswered(t, second)
				p.CutAll()
			}
			if err := <-second; (err != nil) != tc.fails {
				t.Errorf("second INCR: %v, want an error: %v", err, tc.fails)
			}
			want := map[bool]string{false: "1", true: "2"}[tc.carried]
			redistest.Eventually(t, "k = "+want, func() bool { return direct.Get(t.Context(), "k").Val() == want })
			if err := c.Incr(t.Context(), "k").Err(); err != nil {
				t.Errorf("third INCR: %v", err)
			}
			if got := p.Hits("INCR"); got != 3 {
				t.Errorf("hits = %d, want 3", got)
			}
		})
	}
}

// ask sends requests over a plain connection and returns what comes back until it closes, or until then.
func ask(t *testing.T, addr, requests string, patience time.Duration) (string, error) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(conn, requests)
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

func TestWhatTheClientSees(t *testing.T) {
	cases := []struct {
		name   string
		action Action
		answer string
		err    error
	}{
		{"close before", CloseBefore, "", nil},
		{"close after", CloseAfter, "", nil},
		{"reset", Reset, "", syscall.ECONNRESET},
		{"swallow", Swallow, "", os.ErrDeadlineExceeded},
		{"answer", Answer("-OOM no\r\n"), "-OOM no\r\n", os.ErrDeadlineExceeded},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			p, _, _ := setup(t)
			p.On("INCR", 1).Do(tc.action)
			patience := limit
			if tc.err == os.ErrDeadlineExceeded {
				patience = time.Second
			}
			answer, err := ask(t, p.Addr(), "INCR k\r\n", patience)
			if answer != tc.answer || !errors.Is(err, tc.err) {
				t.Errorf("answer %q, %v, want %q, %v", answer, err, tc.answer, tc.err)
			}
		})
	}
}

func TestHeldRequestOutlivesItsClient(t *testing.T) {
	cases := []struct {
		name string
		end  func(*Proxy, *redis.Client)
	}{
		{"client closes", func(_ *Proxy, c *redis.Client) { _ = c.Close() }},
		{"all cut", func(p *Proxy, _ *redis.Client) { p.CutAll() }},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			p, c, direct := setup(t)
			payload := strings.Repeat("x", 3<<20)
			rule := p.On("SET", 1).Containing("held").Do(Hold)
			c.Set(t.Context(), "other", "v", 0)
			held := begun(func() error { return c.Set(t.Context(), "held", payload, 0).Err() })
			rule.Wait(t)
			unanswered(t, held)
			tc.end(p, c)
			if err := <-held; err == nil {
				t.Error("a held request was answered")
			}
			if n := direct.Exists(t.Context(), "held").Val(); n != 0 {
				t.Fatal("the request reached the server before its release")
			}
			rule.Release()
			redistest.Eventually(t, "the orphan is carried out", func() bool {
				return direct.Get(t.Context(), "held").Val() == payload
			})
		})
	}
}

func TestHoldReply(t *testing.T) {
	until := make(chan struct{})
	cases := []struct {
		name  string
		until <-chan struct{}
		let   func(*Proxy)
	}{
		{"until", until, func(*Proxy) { close(until) }},
		{"release", nil, (*Proxy).Release},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			p, c, direct := setup(t)
			rule := p.On("INCR", 1).Do(HoldReply(tc.until))
			result := make(chan error, 1)
			go func() { result <- c.Incr(t.Context(), "k").Err() }()
			rule.Wait(t)
			if got := direct.Get(t.Context(), "k").Val(); got != "1" {
				t.Errorf("k = %q while the reply is held, want 1", got)
			}
			select {
			case err := <-result:
				t.Fatalf("answered while held: %v", err)
			default:
			}
			tc.let(p)
			if err := <-result; err != nil {
				t.Errorf("after release: %v", err)
			}
		})
	}
}

func TestResetLeavesBlockedReadInPlace(t *testing.T) {
	p, c, direct := setup(t)
	ctx := t.Context()
	direct.XGroupCreateMkStream(ctx, "s", "g", "0")
	rule := p.On("XREADGROUP", 1).Do(Reset)
	read := &redis.XReadGroupArgs{Group: "g", Consumer: "c", Streams: []string{"s", ">"}, Block: limit}
	if err := c.XReadGroup(ctx, read).Err(); err == nil {
		t.Fatal("a read that was reset succeeded")
	}
	rule.Wait(t)
	redistest.Eventually(t, "the read is blocked", func() bool {
		return direct.InfoMap(ctx, "clients").Item("Clients", "blocked_clients") == "1"
	})
	direct.XAdd(ctx, &redis.XAddArgs{Stream: "s", Values: []string{"data", "1"}})
	redistest.Eventually(t, "it took the entry", func() bool {
		pending, err := direct.XPending(ctx, "s", "g").Result()
		return err == nil && pending.Count == 1
	})
}

func TestRepliesMatchWithinPipelines(t *testing.T) {
	cases := []struct{ name, hello string }{
		{"RESP2", "PING\r\n"},
		{"RESP3", "HELLO 3\r\n"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			p, _, direct := setup(t)
			direct.HSet(t.Context(), "h", "a", "1")
			direct.Set(t.Context(), "k", 40, 0)
			rule := p.On("INCR", 3).Do(CloseAfter)
			round := "HGETALL h\r\nEVAL \"return {1,{false,'x'},{}}\" 0\r\nINCR k\r\nHGETALL none\r\n"
			got, _ := ask(t, p.Addr(), tc.hello+strings.Repeat(round, 5), limit)
			rule.Wait(t)
			if n := strings.Count(got, "*3\r\n:1\r\n*2\r\n"); n != 3 {
				t.Errorf("%d nested replies, want 3: %q", n, got)
			}
			if !strings.Contains(got, ":41\r\n") || !strings.Contains(got, ":42\r\n") || strings.Contains(got, ":43\r\n") {
				t.Errorf("want the replies of two INCR, not of the third: %q", got)
			}
			if !strings.HasSuffix(got, "*0\r\n") {
				t.Errorf("the last reply is not the one before the third INCR: %q", got)
			}
			redistest.Eventually(t, "all five are carried out", func() bool { return direct.Get(t.Context(), "k").Val() == "45" })
		})
	}
}
