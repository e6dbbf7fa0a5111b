package redistest

import (
	"context"
	"maps"
	"net"
	"sync"
	"sync/atomic"
)

// DialFunc is the type of redis.Options.Dialer.
type DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// Counter counts the requests that clients write to the connections it dials, below any client library: commands
// inside scripts are not counted, repeated ones are. Its methods may be called concurrently.
type Counter struct {
	base DialFunc

	mu     sync.Mutex
	total  int64
	trips  int64
	byName map[string]int
}

// CountingDialer returns a counter whose Dial wraps base; nil means a plain TCP dial.
//
//	counter := redistest.CountingDialer(nil)
//	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Dialer: counter.Dial})
func CountingDialer(base DialFunc) *Counter {
	if base == nil {
		base = (&net.Dialer{}).DialContext
	}
	return &Counter{base: base, byName: map[string]int{}}
}

// Dial is the dialer to be given to redis.Options.
func (c *Counter) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := c.base(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &countedConn{Conn: conn, counter: c}, nil
}

// Total returns the number of requests since the start or the last Reset.
func (c *Counter) Total() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// ByName returns a copy of the number of requests per command, upper case.
func (c *Counter) ByName() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.byName)
}

// RoundTrips is how often, since the start or the last Reset, a connection was written to after it had been read
// from, or for the first time: requests that travel together are one.
func (c *Counter) RoundTrips() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trips
}

// Reset sets all counts to zero.
func (c *Counter) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total, c.trips = 0, 0
	clear(c.byName)
}

func (c *Counter) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total++
	c.byName[name]++
}

// countedConn follows what is written. A connection has one writer at a time, so the parser needs no lock.
type countedConn struct {
	net.Conn
	counter *Counter
	parser  requestParser
	asked   atomic.Bool // written to since it was read from
}

func (c *countedConn) Write(b []byte) (int, error) {
	if !c.asked.Swap(true) {
		c.counter.mu.Lock()
		c.counter.trips++
		c.counter.mu.Unlock()
	}
	n, err := c.Conn.Write(b)
	c.parser.feed(b[:n], c.counter.add)
	return n, err
}

func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.asked.Store(false)
	}
	return n, err
}
