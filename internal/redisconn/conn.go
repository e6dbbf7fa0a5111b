package redisconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

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

	Durability Durability // of sends, takeovers and claims of durable tasks
	// Patience is the longest wait for a reply, or until a command is written; 0 for
	// 5 s, or less where Redis or the URL says so.
	Patience time.Duration
}

// A Conn has the connections to one server, to the master that sentinels watch, or to the
// nodes of a cluster. Its clients differ in how they send a command: they may repeat it,
// never repeat it, send it with others, or wait for replicas. All of them are safe for
// concurrent use.
type Conn struct {
	opened            Options
	keys              keys.Keys
	base              redis.Options
	addr              string
	Retrying          *redis.Client  // repeats a command whose reply was lost: for reads
	NoRetry           *redis.Client  // never repeats a command
	Batched           *Pipelined     // NoRetry for scripts that several goroutines call at once
	Replicated        *redis.Client  // for writes that wait for replicas; without Durability NoRetry
	BatchedReplicated *Pipelined     // Replicated for scripts that several goroutines call at once
	cluster           *cluster       // nil: one server
	tracker           *masterTracker // nil: the server's address never changes
	sentinels         *sentinels     // that this client asks, nil for none
	durability        Durability
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
	c := &Conn{opened: o, keys: o.Keys, base: *base, addr: base.Addr, tracker: newMasterTracker(base, watchers), sentinels: watchers}
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
	c.ensureReplicas(o.Durability)
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

// Addr is the server's address, for messages.
func (c *Conn) Addr() string { return c.addr }

// baseOptions also returns the sentinels, if a URL names any.
func baseOptions(o Options) (*redis.Options, *sentinels, error) {
	if o.Redis == nil && isSentinelURL(o.URL) {
		return parseSentinelURL(o.URL)
	}
	base, err := serverOptions(o)
	return base, nil, err
}

func serverOptions(o Options) (*redis.Options, error) {
	switch r := o.Redis.(type) {
	case nil:
		return parseURL(o.URL)
	case *redis.Ring:
		return nil, errors.New("a Redis Ring is not supported: its shards cannot share a partition's keys")
	case interface{ Options() *redis.Options }:
		return r.Options(), nil
	}
	return nil, fmt.Errorf("redis client of type %T is not supported: use *redis.Client", o.Redis)
}

// options returns the options for a further client. It sets every field that a client's
// Options() returns interpreted, as it would be interpreted a second time: 0 retries
// would become 3.
func (c *Conn) options(retries int) *redis.Options {
	o := c.base
	o.MaxRetries = retries
	o.DialerRetries = 1
	o.DialTimeout = bounded(o.DialTimeout)
	o.ReadTimeout = bounded(o.ReadTimeout)
	o.WriteTimeout = bounded(o.WriteTimeout)
	if own := c.opened.Patience; own > 0 {
		o.ReadTimeout, o.WriteTimeout = own, own
	}
	o.PoolTimeout = Patience
	o.MinRetryBackoff, o.MaxRetryBackoff = 10*time.Millisecond, 500*time.Millisecond
	o.MinIdleConns, o.MaxActiveConns = 0, 0
	o.ContextTimeoutEnabled = true
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.ClientSideCacheConfig, o.ClientSideCache = nil, nil
	o.PushNotificationProcessor = nil
	o.Dialer = muteDialErrors(c.dialer())
	if c.tracker != nil {
		o.OnConnect = c.tracker.verifyRole(o.OnConnect)
	}
	return &o
}

// muteDialErrors turns a failed dial into a connection whose first write fails; see
// failedConn.
func muteDialErrors(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		switch {
		case err == nil:
			return conn, nil
		case ctx.Err() != nil:
			return nil, &dialError{err}
		}
		// A level of wrapping gets lost with an error of a handshake.
		return failedConn{&dialError{&dialError{err}}}, nil
	}
}

func (c *Conn) dialer() func(context.Context, string, string) (net.Conn, error) {
	if c.tracker != nil {
		return c.tracker.open
	}
	if c.base.Dialer != nil {
		return c.base.Dialer
	}
	o := c.base
	o.DialTimeout = bounded(o.DialTimeout)
	return redis.NewDialer(&o)
}

func bounded(d time.Duration) time.Duration {
	if d <= 0 || d > Patience {
		return Patience
	}
	return d
}

// A dialError is the error of a connection that was never made, so that nothing was sent.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// failedConn is the connection of a dial that failed. go-redis writes a line to
// stderr for every such dial, whatever logger the app has: a flood while a server
// is away. So the first write fails instead, with the same error.
type failedConn struct{ err *dialError }

func (c failedConn) Read([]byte) (int, error)         { return 0, c.err }
func (c failedConn) Write([]byte) (int, error)        { return 0, c.err }
func (c failedConn) Close() error                     { return nil }
func (c failedConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c failedConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c failedConn) SetDeadline(time.Time) error      { return nil }
func (c failedConn) SetReadDeadline(time.Time) error  { return nil }
func (c failedConn) SetWriteDeadline(time.Time) error { return nil }

func notSent(err error) bool {
	var dial *dialError
	return errors.As(err, &dial) || errors.Is(err, redis.ErrPoolTimeout) ||
		errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrClosed)
}
