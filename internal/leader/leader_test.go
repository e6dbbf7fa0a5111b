package leader

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/embedded"
)

const poll = 4 * time.Second

// A network can be cut for one client.
type network struct {
	srv  *embedded.Server
	down atomic.Bool

	mu    sync.Mutex
	conns []net.Conn
}

func (n *network) client() *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: n.srv.Addr(), MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true, DisableIdentity: true,
		ReadTimeout: time.Second, WriteTimeout: time.Second, Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if n.down.Load() {
				return nil, fmt.Errorf("the network is down")
			}
			c, err := n.srv.Dial(ctx, network, addr)
			n.mu.Lock()
			defer n.mu.Unlock()
			n.conns = append(n.conns, c)
			return c, err
		},
	})
}

func (n *network) cut() {
	n.down.Store(true)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		c.Close()
	}
}

// terms records the leaders, and fails on two at once.
type terms struct {
	t       *testing.T
	mu      sync.Mutex
	leading string
	won     []string
	lastEnd time.Time
}

func (x *terms) term(name string) func(context.Context) {
	return func(ctx context.Context) {
		x.mu.Lock()
		if x.leading != "" {
			x.t.Errorf("%s leads while %s does", name, x.leading)
		}
		x.leading = name
		x.won = append(x.won, name)
		x.mu.Unlock()
		<-ctx.Done()
		x.mu.Lock()
		x.leading, x.lastEnd = "", time.Now()
		x.mu.Unlock()
	}
}

func (x *terms) now() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.leading
}

func (x *terms) terms() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.won)
}

func candidate(rdb redis.UniversalClient, name string) *Candidate {
	return &Candidate{Redis: rdb, Key: "__leader:app", Old: "__lead:app", Name: name, Poll: poll, Log: slog.New(slog.DiscardHandler)}
}

// bubble runs fn in fake time with a server.
func bubble(t *testing.T, fn func(t *testing.T, srv *embedded.Server, x *terms)) {
	synctest.Test(t, func(t *testing.T) {
		srv := embedded.New()
		defer srv.Close()
		fn(t, srv, &terms{t: t})
	})
}

func TestOneLeadsAndASuccessorFollowsAtOnceAfterAShutdown(t *testing.T) {
	bubble(t, func(t *testing.T, srv *embedded.Server, x *terms) {
		var wg sync.WaitGroup
		stops := map[string]context.CancelFunc{}
		for _, name := range []string{"a", "b", "c"} {
			ctx, stop := context.WithCancel(t.Context())
			stops[name] = stop
			rdb := (&network{srv: srv}).client()
			defer rdb.Close()
			wg.Go(func() { candidate(rdb, name).Run(ctx, x.term(name)) })
		}
		time.Sleep(time.Minute)
		first := x.now()
		if len(x.won) != 1 {
			t.Errorf("terms of %v in a quiet minute, want one", x.won)
		}
		stops[first]()
		time.Sleep(poll)
		if next := x.now(); next == "" || next == first {
			t.Errorf("leader %q, %v after %q stopped", next, poll, first)
		}
		for _, stop := range stops {
			stop()
		}
		wg.Wait()
	})
}

func TestALeaderCutOffStopsBeforeItsSuccessorBegins(t *testing.T) {
	bubble(t, func(t *testing.T, srv *embedded.Server, x *terms) {
		ctx, stop := context.WithCancel(t.Context())
		a, b := &network{srv: srv}, &network{srv: srv}
		ra, rb := a.client(), b.client()
		defer ra.Close()
		defer rb.Close()
		var wg sync.WaitGroup
		wg.Go(func() { candidate(ra, "a").Run(ctx, x.term("a")) })
		time.Sleep(time.Second)
		wg.Go(func() { candidate(rb, "b").Run(ctx, x.term("b")) })
		time.Sleep(time.Minute)
		a.cut()
		cut := time.Now()
		for x.now() != "b" {
			time.Sleep(10 * time.Millisecond)
			if time.Since(cut) > 4*poll {
				t.Fatalf("no successor within %v", 4*poll)
			}
		}
		// The window ends a fifth before the lock: there is a gap, no overlap.
		if gap := time.Since(x.lastEnd); gap <= 0 {
			t.Errorf("gap of %v between the terms", gap)
		}
		a.down.Store(false)
		time.Sleep(time.Minute)
		if x.now() != "b" {
			t.Errorf("leader %q, want b: who comes back is a candidate", x.now())
		}
		stop()
		wg.Wait()
	})
}

func TestWorkersWithDifferentPollsHaveOneLeader(t *testing.T) {
	bubble(t, func(t *testing.T, srv *embedded.Server, x *terms) {
		ctx, stop := context.WithCancel(t.Context())
		slow, quick := candidate((&network{srv: srv}).client(), "slow"), candidate((&network{srv: srv}).client(), "quick")
		defer slow.Redis.Close()
		defer quick.Redis.Close()
		quick.Poll = 100 * time.Millisecond
		var wg sync.WaitGroup
		wg.Go(func() { slow.Run(ctx, x.term("slow")) })
		time.Sleep(10 * time.Millisecond)
		wg.Go(func() { quick.Run(ctx, x.term("quick")) })
		time.Sleep(time.Minute)
		if x.now() != "slow" {
			t.Errorf("leader %q, want slow: its lock must live as long as it counts on", x.now())
		}
		stop()
		wg.Wait()
	})
}

func TestTheTermEndsWhenTheLockIsTaken(t *testing.T) {
	bubble(t, func(t *testing.T, srv *embedded.Server, x *terms) {
		ctx, stop := context.WithCancel(t.Context())
		rdb := (&network{srv: srv}).client()
		defer rdb.Close()
		var wg sync.WaitGroup
		wg.Go(func() { candidate(rdb, "a").Run(ctx, x.term("a")) })
		time.Sleep(time.Second)
		rdb.Set(ctx, "__leader:app", "intruder", 0) // for ever
		time.Sleep(poll)
		if x.now() != "" {
			t.Error("leads without the lock")
		}
		// A lock without an expiry is shortened to the longest allowed life.
		time.Sleep(5 * poll)
		if x.now() != "a" {
			t.Error("a lock that never expires keeps everyone from leading")
		}
		stop()
		wg.Wait()
	})
}

const (
	ofOlder  = "old/0a1b2c3d-12000"
	ofPython = "5f0c9ad8e7b711efa1f30242ac120002"
)

// Python's runnel has a leader of its own.
func TestPythonsLeaderExcludesNoWorker(t *testing.T) {
	bubble(t, func(t *testing.T, srv *embedded.Server, x *terms) {
		ctx, stop := context.WithCancel(t.Context())
		rdb := (&network{srv: srv}).client()
		defer rdb.Close()
		rdb.Set(ctx, "__lead:app", ofPython, 0)
		var wg sync.WaitGroup
		wg.Go(func() { candidate(rdb, "a").Run(ctx, x.term("a")) })
		time.Sleep(poll)
		if x.now() != "a" {
			t.Error("does not lead beside Python's leader")
		}
		rdb.Del(ctx, "__lead:app")
		time.Sleep(time.Minute)
		if n := rdb.Exists(ctx, "__lead:app").Val(); n != 0 || x.terms() != 1 {
			t.Errorf("%d terms, and %d locks of Python's leader taken", x.terms(), n)
		}
		stop()
		wg.Wait()
	})
}

// Workers are replaced one by one. While one of an older version leads, no other does, and no newer
// worker follows before the others of the old version had their turn.
func TestAWorkerOfAnOlderVersionLeadsAlone(t *testing.T) {
	bubble(t, func(t *testing.T, srv *embedded.Server, x *terms) {
		ctx, stop := context.WithCancel(t.Context())
		rdb := (&network{srv: srv}).client()
		defer rdb.Close()
		rdb.Set(ctx, "__lead:app", ofOlder, 30*time.Second)
		var wg sync.WaitGroup
		wg.Go(func() { candidate(rdb, "a").Run(ctx, x.term("a")) })
		time.Sleep(29 * time.Second)
		if x.terms() != 0 {
			t.Error("leads beside a worker of an older version")
		}
		time.Sleep(time.Second + poll) // it has died: another one may follow for a Poll
		if x.terms() != 0 {
			t.Error("leads before a second worker of the older version had its turn")
		}
		time.Sleep(2 * poll)
		if x.now() != "a" {
			t.Error("does not lead although no older one does")
		}
		rdb.Set(ctx, "__lead:app", ofOlder, 30*time.Second)
		time.Sleep(poll)
		if x.now() != "" {
			t.Error("does not end its term for a worker of an older version")
		}
		stop()
		wg.Wait()
	})
}
