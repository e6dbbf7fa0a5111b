package store

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/servers"
)

const (
	alice = "aaaaaaaaaaaaaaaa"
	bob   = "bbbbbbbbbbbbbbbb"
	carol = "cccccccccccccccc"
)

// An env is a server and a client of it.
type env struct {
	*Client
	t    *testing.T
	raw  *redis.Client
	real bool
	addr string
}

// both runs a test on a redis-server and on the embedded server.
func both(t *testing.T, test func(t *testing.T, e *env)) {
	t.Helper()
	servers.Both(t, func(t *testing.T, addr string, real bool) { test(t, newEnv(t, addr, real)) })
}

func realEnv(t *testing.T, args ...string) *env {
	t.Helper()
	return newEnv(t, redistest.Start(t, args...).Addr(), true)
}

func newEnv(t *testing.T, addr string, real bool) *env {
	t.Helper()
	c, err := Open(redisconn.Options{URL: "redis://" + addr, Keys: keys.Keys{App: "example", Layout: keys.Standalone}})
	if err != nil {
		t.Fatal(err)
	}
	raw := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true, MaxRetries: -1, ReadTimeout: time.Minute})
	t.Cleanup(func() {
		raw.Close()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return &env{Client: c, t: t, raw: raw, real: real, addr: addr}
}

// add appends an entry with the given ID, "*" for the next one.
func (e *env) add(log, id string) string {
	e.t.Helper()
	id = try(e.raw.XAdd(e.ctx(), &redis.XAddArgs{Stream: log, ID: id, Values: []any{"data", id}}).Result()).must(e.t)
	return id
}

// series appends entries 1-1, 1-2, …
func (e *env) series(log string, n int) {
	e.t.Helper()
	for i := range n {
		e.add(log, fmt.Sprint("1-", i+1))
	}
}

// lock obtains a partition's lock.
func (e *env) lock(p Partition, t Claim) {
	e.t.Helper()
	e.must(e.Lock(e.ctx(), p, t, 10*time.Second, 10*time.Second))
}

// own makes the executor the partition's owner, even if another one holds the lock.
func (e *env) own(p Partition, t Claim) Takeover {
	e.t.Helper()
	e.must(e.raw.Del(e.ctx(), p.Lock).Err())
	e.lock(p, t)
	pos := try(e.Takeover(e.ctx(), p, t, "", 0)).must(e.t)
	return pos
}

// refresh refreshes leases with an empty heartbeat.
func (e *env) refresh(rs ...LeaseRequest) RefreshResult {
	e.t.Helper()
	return try(e.Refresh(e.ctx(), Heartbeat{Key: "beat", Expiry: 10 * time.Second, Membership: "memb"}, rs)).must(e.t)
}

// read reads as an owner does, without blocking, and returns the IDs.
func (e *env) read(p Partition, executor string, count int) []string {
	e.t.Helper()
	r := e.NewReader()
	defer r.Close()
	got := try(r.Read(e.ctx(), GroupName(p.Processor, executor), "c", []string{p.Log}, count, 0)).must(e.t)
	var all []string
	for _, c := range got {
		all = append(all, ids(c.Entries)...)
	}
	return all
}

func (e *env) ctx() context.Context { return e.t.Context() }

func (e *env) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

// An outcome is what a call returned.
type outcome[T any] struct {
	value T
	err   error
}

func try[T any](value T, err error) outcome[T] { return outcome[T]{value, err} }

// must returns the value; an error ends the test.
func (o outcome[T]) must(t *testing.T) T {
	t.Helper()
	if o.err != nil {
		t.Fatal(o.err)
	}
	return o.value
}

// groups returns the names of a partition's groups with their last-delivered IDs.
func (e *env) groups(log string) map[string]string {
	e.t.Helper()
	infos := try(e.raw.XInfoGroups(e.ctx(), log).Result()).must(e.t)
	m := map[string]string{}
	for _, g := range infos {
		m[g.Name] = g.LastDeliveredID
	}
	return m
}

func ids(entries []redisconn.Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.ID)
	}
	return out
}

func tenure(executor string, n uint64) Claim { return Claim{Executor: executor, Number: n} }

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if g, w := fmt.Sprintf("%v", got), fmt.Sprintf("%v", want); g != w {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}

// counted returns a client and the number of its writes to connections.
func (e *env) counted() (writes *atomic.Int64, c *Client) {
	e.t.Helper()
	o := &redis.Options{Addr: e.addr}
	dial := redis.NewDialer(o)
	writes = new(atomic.Int64)
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := dial(ctx, network, addr)
		return &countedConn{nc, writes}, err
	}
	shared := redis.NewClient(o)
	e.t.Cleanup(func() { shared.Close() })
	c = try(Open(redisconn.Options{Redis: shared, Keys: e.keys})).must(e.t)
	return writes, c
}

type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c *countedConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

const time30s = 30 * time.Second

// blocked waits until a read of r has reached the server and blocks there.
func (e *env) blocked(r *redisconn.Reader) {
	e.t.Helper()
	if e.real {
		redistest.Eventually(e.t, "blocked read", func() bool {
			return strings.Contains(e.raw.ClientList(e.ctx()).Val(), "cmd=xreadgroup") &&
				strings.Contains(e.raw.Info(e.ctx(), "clients").Val(), "blocked_clients:1")
		})
		return
	}
	redistest.Eventually(e.t, "sent read", r.Waiting)
}

// switchConn is a servers.DeafConn while *deaf is true.
type switchConn struct {
	net.Conn
	deaf *bool
}

func (c *switchConn) Read(b []byte) (int, error) {
	if *c.deaf {
		return servers.DeafConn{Conn: c.Conn}.Read(b)
	}
	return c.Conn.Read(b)
}
