package delayqueue

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/embedded"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

var testKeys = Keys{Due: "due", Run: "run", Versions: "ver", Data: "data", Attempts: "att", Sequence: "seq"}

// An env is a queue on a server.
type env struct {
	Queue
	t   *testing.T
	raw *redis.Client
}

// both runs a test on a redis-server and on the embedded server.
func both(t *testing.T, test func(e *env)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) { test(newEnv(t, redistest.Start(t).Addr())) })
	t.Run("embedded", func(t *testing.T) {
		s, err := embedded.Start("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		test(newEnv(t, s.Addr()))
	})
}

func newEnv(t *testing.T, addr string) *env {
	t.Helper()
	raw := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true, MaxRetries: -1})
	t.Cleanup(func() { raw.Close() })
	return &env{Queue: New(raw, testKeys), t: t, raw: raw}
}

// at is a time of the past, or with a large n one that no test lives to see.
func at(n int64) time.Time { return time.UnixMilli(n) }

const far = int64(4e12) // in the year 2096

func (e *env) put(p Put) Stored {
	e.t.Helper()
	s, ok, err := e.Put(e.t.Context(), p)
	if err != nil || !ok {
		e.t.Fatalf("put %+v: %v, %v", p, ok, err)
	}
	return s
}

func (e *env) take(n int) []Entry {
	e.t.Helper()
	taken, _, err := e.Take(e.t.Context(), n)
	if err != nil {
		e.t.Fatal(err)
	}
	return taken
}

func (e *env) done(entry Entry, end End) Outcome {
	e.t.Helper()
	o, err := e.Done(e.t.Context(), entry, end)
	if err != nil {
		e.t.Fatal(err)
	}
	return o
}

func (e *env) list() []Entry {
	e.t.Helper()
	l, err := e.List(e.t.Context(), 0, 1000)
	if err != nil {
		e.t.Fatal(err)
	}
	return l
}

// left are the keys that still exist.
func (e *env) left() []string {
	e.t.Helper()
	var out []string
	for _, k := range testKeys.Names() {
		if e.raw.Exists(e.t.Context(), k).Val() == 1 {
			out = append(out, k)
		}
	}
	return out
}

func ids(entries []Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.ID)
	}
	return out
}

func text(s string) *string { return &s }

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}
