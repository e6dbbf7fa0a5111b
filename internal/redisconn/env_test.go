package redisconn

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/servers"
)

var example = keys.Keys{App: "example", Layout: keys.Standalone}

// group is the consumer group of the tests.
const group = "printer"

// An env is a server and connections to it.
type env struct {
	*Conn
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

func realEnv(t *testing.T) *env {
	t.Helper()
	return newEnv(t, redistest.Start(t).Addr(), true)
}

func newEnv(t *testing.T, addr string, real bool) *env {
	t.Helper()
	c, err := Open(Options{URL: "redis://" + addr, Keys: example})
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
	return &env{Conn: c, t: t, raw: raw, real: real, addr: addr}
}

// own creates the consumer group of a stream.
func (e *env) own(log string) {
	e.t.Helper()
	e.must(e.raw.XGroupCreateMkStream(e.ctx(), log, group, "0").Err())
}

// add appends an entry with the given ID, "*" for the next one.
func (e *env) add(log, id string) string {
	e.t.Helper()
	id, err := e.raw.XAdd(e.ctx(), &redis.XAddArgs{Stream: log, ID: id, Values: []any{"data", id}}).Result()
	e.must(err)
	return id
}

// begin reads five entries of a stream, 1-1 to 5-5, and acks none.
func (e *env) begin(log string) {
	e.t.Helper()
	e.own(log)
	for i := range 5 {
		e.add(log, fmt.Sprintf("%d-%d", i+1, i+1))
	}
	e.must(e.raw.XReadGroup(e.ctx(), &redis.XReadGroupArgs{Group: group, Consumer: "c", Streams: []string{log, ">"}}).Err())
}

func (e *env) ctx() context.Context { return e.t.Context() }

func (e *env) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

func ids(entries []Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.ID)
	}
	return out
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if g, w := fmt.Sprintf("%v", got), fmt.Sprintf("%v", want); g != w {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}
