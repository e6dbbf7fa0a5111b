package faultproxy

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy listens on a port of 127.0.0.1. Its methods may be called concurrently.
type Proxy struct {
	listener net.Listener
	running  sync.WaitGroup

	mu      sync.Mutex
	target  string
	rules   []*Rule
	hits    map[string]int
	conns   map[*conn]struct{}
	gate    chan struct{} // closed while traffic may pass
	latency time.Duration
	refuse  bool
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
		listener: l, target: target,
		hits: map[string]int{}, conns: map[*conn]struct{}{}, gate: make(chan struct{}),
	}
	close(p.gate)
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr is the address that clients are to connect to, host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// SetTarget makes connections from now on go to another server. Those that exist stay where they are; CutAll ends them.
func (p *Proxy) SetTarget(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = addr
}

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

// Refuse makes the proxy reset every new connection as soon as it is made, or stop doing so. Those that exist go on.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = on
}

// Pause stops all traffic in both directions without closing anything: neither side learns what the other sends, nor
// that it has closed. New connections are accepted, but hear nothing.
func (p *Proxy) Pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.gate:
		p.gate = make(chan struct{})
	default:
	}
}

// Resume lets traffic pass again; what was sent meanwhile arrives now.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.gate:
	default:
		close(p.gate)
	}
}

// Latency delays whatever passes, in each direction, by at least d. Throughput falls to 64 KiB per d and direction.
func (p *Proxy) Latency(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latency = d
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
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
	if p.refuse || p.closed {
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

func (p *Proxy) dial() (net.Conn, error) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	return net.Dial("tcp", target)
}

func (p *Proxy) open() []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]*conn, 0, len(p.conns))
	for c := range p.conns {
		list = append(list, c)
	}
	return list
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	for _, c := range p.open() {
		c.close()
	}
	p.running.Wait()
}

// pass waits until the latency is over and traffic may pass, and says whether the connection still exists then.
func (p *Proxy) pass(cut <-chan struct{}) bool {
	p.mu.Lock()
	latency := p.latency
	p.mu.Unlock()
	if latency > 0 && !wait(latency, cut) {
		return false
	}
	p.mu.Lock()
	gate := p.gate
	p.mu.Unlock()
	select {
	case <-gate:
		return true
	case <-cut:
		return false
	}
}

// wait waits for d, and says whether the connection still exists then.
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
