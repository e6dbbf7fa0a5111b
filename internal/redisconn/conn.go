package redisconn

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
)

// Patience is the longest wait for a dial, a write, or a reply.
const Patience = 5 * time.Second

// Options select the server of a Conn.
type Options struct {
	Redis redis.UniversalClient // only its Options are used; it is never closed
	URL   string                // used when Redis is nil; see parseClusterURL and parseSentinelURL
	TLS   TLSFiles              // of URL
	Keys  keys.Keys

	MinReplicas        int           // that must confirm a send, a takeover, and a claim of a durable task
	ReplicationTimeout time.Duration // how long that may take
	// Patience is the longest wait for a reply, or until a command is written; 0 for
	// 5 s, or less where Redis or the URL says so.
	Patience time.Duration
}

// A Conn has the connections to one server, to the master that sentinels watch, or to the
// nodes of a cluster. Its clients differ in how they send a command: they may repeat it,
// never repeat it, send it with others, or wait for replicas. All of them are safe for
// concurrent use.
type Conn struct {
	server
	opened            Options
	keys              keys.Keys
	Retrying          *redis.Client // repeats a command whose reply was lost: for reads
	NoRetry           *redis.Client // never does
	Batched           *Pipelined    // NoRetry for scripts that several goroutines call at once
	Replicated        *redis.Client // for what waits for replicas: NoRetry, where nothing does
	BatchedReplicated *Pipelined    // Replicated for scripts that several goroutines call at once
	cluster           *cluster      // nil: one server
	scripts           loadedScripts // of Replicated

	cannotUnblock, cannotKill atomic.Bool // as far as was seen
}

// Open returns a Conn without any I/O.
func Open(o Options) (*Conn, error) {
	nodes, err := clusterOptions(o)
	if err != nil {
		return nil, err
	}
	var base *redis.Options
	var watchers *sentinels
	if nodes != nil {
		base = nodeOptions(nodes)
	} else if base, watchers, err = baseOptions(o); err != nil {
		return nil, err
	}
	if o.Redis == nil {
		if err := o.TLS.apply(base); err != nil {
			return nil, fmt.Errorf("redis at %s: %w", base.Addr, err)
		}
	}
	c := &Conn{opened: o, keys: o.Keys, server: server{
		base: *base, addr: base.Addr, patience: o.Patience, tracker: newMasterTracker(base, watchers), sentinels: watchers,
	}}
	if c.addr == failoverClient {
		c.addr = "the master of a failover client"
	}
	if nodes != nil {
		c.openCluster(nodes.Addrs)
	} else {
		c.Retrying = c.hooked(c.options(3), redactHook{})
		c.NoRetry = c.hooked(c.options(-1), redactHook{})
	}
	c.Batched = newPipelined(c.NoRetry, c.cluster, callsTogether, func(ctx context.Context, calls []*Call) error {
		Pipeline(ctx, c.NoRetry, calls)
		return nil
	})
	c.ensureReplicas()
	return c, nil
}

// hooked returns a client that names wrong types, with a further hook inside.
func (c *Conn) hooked(o *redis.Options, own redis.Hook) *redis.Client {
	rdb := redis.NewClient(o)
	rdb.AddHook(naming{c})
	rdb.AddHook(own)
	return rdb
}

// Close closes the client's connections, not those of Readers, and never the
// client it was opened with. A second call does nothing.
func (c *Conn) Close() error {
	var errs []error
	for _, rdb := range []*redis.Client{c.Retrying, c.NoRetry, c.Replicated} {
		if err := rdb.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if c.cluster != nil {
		errs = append(errs, c.cluster.close())
	}
	if c.tracker != nil {
		errs = append(errs, c.tracker.close())
	}
	return errors.Join(errs...)
}

// Redis returns a client for reads that may be repeated.
func (c *Conn) Redis() redis.UniversalClient { return c.Retrying }

// Opened returns the options that the client was opened with, for another client of the
// same server.
func (c *Conn) Opened() Options { return c.opened }

// Keys names the app's keys.
func (c *Conn) Keys() keys.Keys { return c.keys }
