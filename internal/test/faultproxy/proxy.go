package faultproxy

import (
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// acceptPause is between two tries to accept a connection.
const acceptPause = 10 * time.Millisecond

// Proxy listens on a port of 127.0.0.1. Its methods may be called concurrently.
type Proxy struct {
	listener net.Listener
	running  sync.WaitGroup

	target  atomic.Pointer[string]
	latency atomic.Int64 // a time.Duration
	perSec  atomic.Int64 // bytes, 0 for any number

	mu      sync.Mutex
	rules   []*Rule
	hits    map[string]int
	conns   map[*conn]struct{}
	gate    chan struct{} // closed while traffic may pass
	replies chan struct{} // closed while replies may pass
	closed  bool
}

// Start starts a proxy in front of target, a host:port. It ends with t, and its connections with it.
func Start(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("start fault proxy: %v", err)
	}
	p := &Proxy{
		listener: l,
		hits:     map[string]int{}, conns: map[*conn]struct{}{}, gate: make(chan struct{}), replies: make(chan struct{}),
	}
	p.SetTarget(target)
	close(p.gate)
	close(p.replies)
	p.running.Go(p.accept)
	t.Cleanup(p.Close)
	return p
}

// Addr is the address that clients are to connect to, host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// SetTarget makes connections from now on go to another server. Those that exist stay where they are; CutAll ends them.
func (p *Proxy) SetTarget(addr string) { p.target.Store(&addr) }

// Hits is the number of requests of a command, upper case, that have arrived at the proxy.
func (p *Proxy) Hits(command string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hits[command]
}

// CutAll closes all connections at once, on both sides. The server still gets the requests that a rule holds back.
func (p *Proxy) CutAll() {
	for _, c := range p.open() {
		c.cutNow()
	}
}

// Pause stops all traffic in both directions without closing anything: neither side learns what the other sends, nor
// that it has closed. New connections are accepted, but hear nothing.
func (p *Proxy) Pause() { p.let(&p.gate, false) }

// Resume lets traffic pass again; what was sent meanwhile arrives now.
func (p *Proxy) Resume() { p.let(&p.gate, true) }

// Latency delays whatever passes, in each direction, by at least d. Throughput falls to 64 KiB per d and direction.
func (p *Proxy) Latency(d time.Duration) { p.latency.Store(int64(d)) }

// Bandwidth lets each connection carry so many bytes a second in each direction, 0 for any number.
func (p *Proxy) Bandwidth(perSecond int) { p.perSec.Store(int64(perSecond)) }

// HoldReplies holds back the server's replies, or delivers the held ones; requests are still
// executed.
func (p *Proxy) HoldReplies(on bool) { p.let(&p.replies, !on) }

// let opens or closes a gate, which is a channel that is closed while the gate is open.
func (p *Proxy) let(gate *chan struct{}, pass bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-*gate:
		if !pass {
			*gate = make(chan struct{})
		}
	default:
		if pass {
			close(*gate)
		}
	}
}

// HalfOpen discards everything that either side of the present connections sends from now on,
// including its close, as when a router between them forgets them. The server's ends stay until the
// server or the proxy closes them. New connections are not affected.
func (p *Proxy) HalfOpen() {
	for _, c := range p.open() {
		c.vanished.Store(true)
	}
}

// Close ends the proxy and its connections, and returns when they are gone. Further calls do nothing.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	for _, c := range p.open() {
		c.close()
	}
	p.running.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as for want of files
			<-time.After(acceptPause)
			continue
		}
		c := newConn(p, client.(*net.TCPConn))
		if !p.admit(c) {
			c.resetClient()
			continue
		}
		p.running.Go(func() {
			defer p.forget(c)
			c.run()
		})
	}
}

func (p *Proxy) admit(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) forget(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *Proxy) open() []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.conns))
}

// pass waits until the latency is over and traffic may pass, and reports whether the connection still exists then.
func (p *Proxy) pass(cut <-chan struct{}) bool {
	latency := time.Duration(p.latency.Load())
	return (latency <= 0 || wait(latency, cut)) && p.opened(&p.gate, cut)
}

// opened waits for a gate, and reports whether the connection still exists then.
func (p *Proxy) opened(gate *chan struct{}, cut <-chan struct{}) bool {
	p.mu.Lock()
	open := *gate
	p.mu.Unlock()
	select {
	case <-open:
		return true
	case <-cut:
		return false
	}
}

// spend takes as long as n bytes do, and reports whether the connection still exists then.
func (p *Proxy) spend(n int, cut <-chan struct{}) bool {
	perSec := p.perSec.Load()
	return perSec <= 0 || wait(time.Duration(n)*time.Second/time.Duration(perSec), cut)
}

// wait waits for d, and reports whether the connection still exists then.
func wait(d time.Duration, cut <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-cut:
		return false
	}
}
