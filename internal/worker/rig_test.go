package worker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/embedded"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// A rig is a running worker with one processor over one partition, in fake time. got holds the
// processed entries.
type rig struct {
	t   *testing.T
	w   *Worker
	rdb *redis.Client

	mu  sync.Mutex
	got []string
	own *Ownership // of the last call of the function
}

func open(t *testing.T, srv *embedded.Server) (*redis.Client, *store.Client) {
	t.Helper()
	// In fake time no client may wait for a connection: go-redis shares the timers for that between bubbles.
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr(), PoolSize: 1 << 10, Dialer: func(ctx context.Context, n, a string) (net.Conn, error) { return srv.Dial(ctx, n, a) }})
	t.Cleanup(func() { rdb.Close() })
	client, err := store.Open(redisconn.Options{Redis: rdb, Keys: keys.Keys{App: "app", Layout: keys.Standalone}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return rdb, client
}

// inRig runs fn with a rig that owns its partition. before, if not nil, is called
// with each entry between processing it and acking it.
func inRig(t *testing.T, before func(r *rig, n int), fn func(r *rig)) {
	inBubble(t, func(t *testing.T, srv *embedded.Server) {
		r := &rig{t: t}
		rdb, client := open(t, srv)
		r.rdb = rdb
		p := &Processor{
			Stream: "s", Name: "p", Partitions: 1, Lease: 10 * time.Second, Grace: time.Second,
			Prefetch: 256, PrefetchBytes: 1 << 20, ReadConns: 1, Gates: []string{"part"},
		}
		p.Consume = func(ctx context.Context, src Input) error {
			r.mu.Lock()
			r.own = OwnershipOf(ctx)
			r.mu.Unlock()
			for {
				es, err := src.Take(1, 0)
				if err != nil {
					return nil
				}
				r.mu.Lock()
				r.got = append(r.got, fmt.Sprint(es[0].Values["n"]))
				n := len(r.got)
				r.mu.Unlock()
				if before != nil {
					before(r, n)
				}
				src.Ack([]string{es[0].ID})
			}
		}
		r.w = New(&Config{
			App: "app", Worker: "w", Client: client, Logger: quiet, TimeZone: time.UTC, LeaderPoll: time.Second,
			Ensure: func(context.Context, Step) error { return nil }, Processors: []*Processor{p},
		})
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- r.w.Run(ctx) }()
		time.Sleep(3 * time.Second)
		r.ready()
		fn(r)
		cancel()
		r.ends(result)
	})
}

// ends waits for Run. A worker that hangs is freed, so that the test ends.
func (r *rig) ends(result <-chan error) {
	for patience := time.Minute; ; patience = time.Second {
		select {
		case err := <-result:
			if err != nil {
				r.t.Errorf("Run: %v", err)
			}
			return
		case <-time.After(patience):
			r.t.Error("Run hangs")
			for _, p := range r.x().ownerships.owned() {
				r.x().releases.lose(p, errors.New("the test is over"))
			}
		}
	}
}

func (r *rig) x() *member { return r.w.executors[0].member() }

func (r *rig) partition() *partition {
	return r.x().ownerships.at(0)
}

func (r *rig) add(numbers ...int) {
	r.t.Helper()
	for _, n := range numbers {
		if err := r.rdb.XAdd(r.t.Context(), &redis.XAddArgs{Stream: "__strm:app.s.0", Values: []any{"n", n}}).Err(); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) ready() {
	r.t.Helper()
	if err := r.w.Ready(); err != nil {
		r.t.Errorf("not ready: %v", err)
	}
}

// wants checks what was processed, and that all of it is acked.
func (r *rig) wants(want string) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := strings.Join(r.got, " "); got != want {
		r.t.Errorf("processed %q, want %q", got, want)
	}
	groups := r.rdb.XInfoGroups(r.t.Context(), "__strm:app.s.0").Val()
	if len(groups) != 1 || groups[0].Pending != 0 {
		r.t.Errorf("groups %+v, want one with nothing pending", groups)
	}
}

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
