package redisconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// A server opens the connections of a Conn: to one address, to the master that sentinels watch, or to
// the nodes of a cluster.
type server struct {
	base      redis.Options
	addr      string
	patience  time.Duration  // see Options
	tracker   *masterTracker // nil if the server's address never changes
	sentinels *sentinels     // of a sentinel URL, else nil
}

// Addr returns the server's address for messages.
func (s *server) Addr() string { return s.addr }

// baseOptions returns the options of the server, and the sentinels that a URL names.
func baseOptions(o Options) (*redis.Options, *sentinels, error) {
	if o.Redis == nil && isSentinelURL(o.URL) {
		return parseSentinelURL(o.URL)
	}
	base, err := serverOptions(o)
	return base, nil, err
}

// serverOptions returns the options of one server.
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

// options returns the options of a new client. It sets every field whose default go-redis has already
// filled in, as go-redis would do so again: 0 retries would become 3.
func (s *server) options(retries int) *redis.Options {
	o := s.base
	o.MaxRetries = retries
	o.DialerRetries = 1
	o.DialTimeout = bounded(o.DialTimeout)
	o.ReadTimeout = bounded(o.ReadTimeout)
	o.WriteTimeout = bounded(o.WriteTimeout)
	if own := s.patience; own > 0 {
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
	o.Dialer = muteDialErrors(s.dialer())
	if s.tracker != nil {
		o.OnConnect = inTurn(o.OnConnect, verifyRole)
	}
	return &o
}

// inTurn returns a handshake of several steps; nil is none.
func inTurn(steps ...func(context.Context, *redis.Conn) error) func(context.Context, *redis.Conn) error {
	return func(ctx context.Context, cn *redis.Conn) error {
		for _, step := range steps {
			if step == nil {
				continue
			}
			if err := step(ctx, cn); err != nil {
				return err
			}
		}
		return nil
	}
}

// dialer returns the function that opens a connection.
func (s *server) dialer() func(context.Context, string, string) (net.Conn, error) {
	if s.tracker != nil {
		return s.tracker.open
	}
	if s.base.Dialer != nil {
		return s.base.Dialer
	}
	o := s.base
	o.DialTimeout = bounded(o.DialTimeout)
	return redis.NewDialer(&o)
}

func bounded(d time.Duration) time.Duration {
	if d <= 0 || d > Patience {
		return Patience
	}
	return d
}

// muteDialErrors returns a failedConn in place of the error of a failed dial.
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

// A dialError means that there was no connection, so that nothing was sent.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// failedConn stands for a connection whose dial failed: its first write returns the error. go-redis
// writes a line to stderr for every failed dial, a flood while a server is away.
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
