package runneltest

import (
	"context"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/embedded"
)

// Sim runs fn with a cluster in fake time: an embedded Redis and the workers that fn
// starts, in a synctest bubble. An hour takes as long as what happens in it. When fn
// returns, workers that still run are stopped, and t fails for each whose Run returned an
// error that the test did not cause (Worker.Stop, Worker.Err).
//
// build makes the app of a worker from its options, in which Redis, Worker and
// Logger are set. It is called for every Start: one App is one process.
//
// Set RUNNEL_SIM_LOG to "debug", "info" or "warn" to see the workers' logs.
func Sim(t *testing.T, build func(opts *runnel.Options) *runnel.App, fn func(c *Cluster)) {
	t.Helper()
	quiet()
	synctest.Test(t, func(t *testing.T) {
		c := &Cluster{t: t, build: build, server: embedded.New()}
		c.outside = newNetwork(c.server.Dial, 0)
		c.redis = c.client(c.outside.Dial)
		defer c.close()
		fn(c)
	})
}

// A Cluster is the workers of an app and their Redis, in fake time. Its methods
// may be called concurrently.
type Cluster struct {
	t      *testing.T
	build  func(*runnel.Options) *runnel.App
	server *embedded.Server
	redis  *redis.Client
	// outside connects what is no worker. A pipe to the server alone would not do:
	// a pipeline is written before its replies are read, and a pipe holds nothing.
	outside *network

	mu      sync.Mutex
	latency time.Duration
	workers []*Worker
	clients []*redis.Client
}

// Context returns the context of the bubble, which ends with it. The outer
// t.Context cannot be used in fn.
func (c *Cluster) Context() context.Context { return c.t.Context() }

// Redis returns a client that no fault reaches. It is closed by Sim.
func (c *Cluster) Redis() *redis.Client { return c.redis }

// Options returns options for an app outside the workers, a producer, say. No
// fault reaches it. Close the app before Sim ends.
func (c *Cluster) Options(name string) *runnel.Options { return c.options(name, c.outside.Dial) }

// Latency lets each way between Redis and the workers that are started from now
// on take a random time up to d; without it none.
func (c *Cluster) Latency(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latency = d
}

func (c *Cluster) takes() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latency
}

// Start starts a worker and returns at once. A name stands for one process: a
// worker that takes the place of another has a name of its own.
func (c *Cluster) Start(name string) *Worker {
	c.t.Helper()
	n := newNetwork(c.server.Dial, c.takes())
	w := &Worker{c: c, name: name, net: n, done: make(chan struct{}), dead: make(chan struct{})}
	w.app = c.build(c.options(name, n.Dial))
	ctx, cancel := context.WithCancel(context.WithValue(context.WithoutCancel(c.t.Context()), workerKey{}, w))
	w.cancel = cancel
	c.mu.Lock()
	c.workers = append(c.workers, w)
	c.mu.Unlock()
	go w.run(ctx)
	return w
}

// Sleep lets d of fake time pass.
func (c *Cluster) Sleep(d time.Duration) { time.Sleep(d) }

// Wait waits until cond holds, and is fatal if it does not within ten minutes of
// fake time. It looks every 10 ms.
func (c *Cluster) Wait(cond func() bool) {
	c.t.Helper()
	for range 60_000 {
		if cond() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.t.Fatal("runneltest: the condition did not come true in ten minutes")
}

// dialer fits redis.Options.Dialer.
type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

const poolSize = 1 << 10

// client makes a client, which close closes. The address is an IP: a host name
// would be looked up outside the bubble. Its pool is never used up: who waits for a
// connection does so by a timer that go-redis shares between the bubbles of a process.
func (c *Cluster) client(dial dialer) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: c.server.Addr(), Dialer: dial, DisableIdentity: true, PoolSize: poolSize})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clients = append(c.clients, rdb)
	return rdb
}

func (c *Cluster) options(name string, dial dialer) *runnel.Options {
	return &runnel.Options{Redis: c.client(dial), WorkerName: name, Logger: c.logger().With("worker", name)}
}

func (c *Cluster) logger() *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(os.Getenv("RUNNEL_SIM_LOG"))); err != nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(c.t.Output(), &slog.HandlerOptions{Level: level}))
}

// close stops what runs and waits for it.
func (c *Cluster) close() {
	c.mu.Lock()
	workers := c.workers
	c.mu.Unlock()
	var all sync.WaitGroup
	for _, w := range workers {
		all.Go(func() {
			if err := w.stop(); err != nil && !w.asked() {
				c.t.Errorf("worker %s: Run: %v", w.name, err)
			}
			w.net.cut(true)
			w.net.wait()
		})
	}
	all.Wait()
	for _, rdb := range c.clients {
		rdb.Close()
	}
	c.outside.cut(true)
	c.outside.wait()
	c.server.Close()
	// The bubble must be empty in the end: a function that outlived its worker has
	// time to return, and pools of go-redis whose dials failed to find out that
	// they are closed.
	time.Sleep(10 * time.Minute)
}

// quiet silences go-redis, which logs every connection that is refused.
var quiet = sync.OnceFunc(func() { redis.SetLogger(silence{}) })

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}
