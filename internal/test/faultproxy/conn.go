package faultproxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// exchange is a request whose reply is yet to come.
type exchange struct {
	rule *Rule         // nil for one that no rule hurts
	raw  bool          // from its reply on the server may say anything at any time
	done chan struct{} // closed when the reply has been dealt with; nil without a rule
}

// conn is one client's connection and its own connection to the server. One goroutine carries requests, one replies.
// The server's side ends when the requests' goroutine has forwarded all it will; everything else follows from that.
type conn struct {
	proxy    *Proxy
	client   *net.TCPConn
	server   *net.TCPConn // set before both goroutines start
	fromUser *bufio.Reader
	toServer *bufio.Writer
	fromRds  *bufio.Reader
	toUser   *bufio.Writer

	cut      chan struct{} // closed when both sides are closed
	cutOnce  sync.Once
	sentAll  chan struct{} // closed when no further request will be forwarded
	deliver  delivery
	vanished atomic.Bool // what is sent arrives nowhere
	mu       sync.Mutex
	waiting  []*exchange // requests forwarded, oldest first
	orphaned bool        // the client was cut off; what is held still goes to the server
	holding  bool
}

func newConn(p *Proxy, client *net.TCPConn) *conn {
	c := &conn{proxy: p, client: client, cut: make(chan struct{}), sentAll: make(chan struct{})}
	c.deliver.conn = c
	return c
}

func (c *conn) run() {
	if !c.proxy.pass(c.cut) {
		return
	}
	server, err := net.Dial("tcp", *c.proxy.target.Load())
	if err != nil {
		c.close()
		return
	}
	c.connect(server.(*net.TCPConn))
	defer c.close()

	var replies sync.WaitGroup
	replies.Go(c.replies)
	c.requests()
	c.endRequests()
	replies.Wait()
}

func (c *conn) connect(server *net.TCPConn) {
	c.mu.Lock()
	c.server = server
	c.mu.Unlock()
	select {
	case <-c.cut: // closed while dialing: close did not see the server's side
		_ = server.Close()
	default:
	}
	c.toServer = bufio.NewWriterSize(&gated{c, server}, bufferSize)
	c.fromUser = bufio.NewReaderSize(&flushing{c.client, c.toServer}, bufferSize)
	c.toUser = bufio.NewWriterSize(&c.deliver, bufferSize)
	c.fromRds = bufio.NewReaderSize(&flushing{server, c.toUser}, bufferSize)
}

// requests forwards what the client sends until it is gone, or a rule ends its connection.
func (c *conn) requests() {
	for {
		req, err := readRequest(c.fromUser)
		switch {
		case errors.Is(err, errProtocol):
			c.passThrough(req)
			return
		case err != nil:
			return
		}
		if !c.forward(req) {
			return
		}
	}
}

// forward carries one request to the server, unless its rule says otherwise, and reports whether to go on.
func (c *conn) forward(req *request) bool {
	switch req.name {
	case "":
		return req.writeTo(c.toServer, c.fromUser) == nil
	case "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "MONITOR", "SYNC", "PSYNC":
		c.passThrough(req)
		return false
	}
	rule := c.proxy.match(req)
	if rule == nil {
		c.expect(&plain)
		return req.writeTo(c.toServer, c.fromUser) == nil
	}
	return c.forwardHurt(req, rule)
}

// plain stands for all requests that no rule hurts.
var plain exchange

func (c *conn) forwardHurt(req *request, rule *Rule) bool {
	x := &exchange{rule: rule, done: make(chan struct{})}
	switch rule.action.kind {
	case closeBefore:
		_ = c.client.Close()
		rule.fire()
		return false
	case hold:
		return c.hold(req, x)
	case delay:
		rule.fire()
		if c.toServer.Flush() != nil || !wait(rule.action.delay, c.cut) {
			return false
		}
	case answer:
		// The PING keeps the order of the replies: its own is replaced.
		if req.writeTo(io.Discard, c.fromUser) != nil {
			return false
		}
		req = &request{head: []byte("*1\r\n$4\r\nPING\r\n")}
	}
	c.expect(x)
	if req.writeTo(c.toServer, c.fromUser) != nil {
		return false
	}
	if rule.action.kind == reset {
		c.resetAndAwait(x)
		return false
	}
	return true
}

func (c *conn) resetAndAwait(x *exchange) {
	if c.toServer.Flush() != nil {
		return
	}
	c.resetClient()
	x.rule.fire()
	select {
	case <-x.done:
	case <-c.cut:
	}
}

// hold takes the whole request off the client, so that it survives the client, and forwards it when released.
func (c *conn) hold(req *request, x *exchange) bool {
	var whole bytes.Buffer
	if c.toServer.Flush() != nil || req.writeTo(&whole, c.fromUser) != nil {
		return false
	}
	c.setHolding(true)
	x.rule.fire()
	select {
	case <-x.rule.release:
	case <-c.cut:
		return false
	}
	c.expect(x)
	_, err := c.toServer.Write(whole.Bytes())
	if err == nil {
		err = c.toServer.Flush()
	}
	return !c.setHolding(false) && err == nil
}

// setHolding reports whether the client was cut off meanwhile.
func (c *conn) setHolding(on bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holding = on
	return c.orphaned
}

// passThrough forwards this request and all that follows without looking at it.
func (c *conn) passThrough(req *request) {
	c.expect(&exchange{raw: true})
	if req.writeTo(c.toServer, c.fromUser) == nil {
		_, _ = io.Copy(unbuffered{c.toServer}, c.fromUser)
	}
}

func (c *conn) expect(x *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, x)
}

// endRequests tells the server that the client is gone. It is not closed before it has read what was forwarded:
// closing at once could reset the connection under the last request.
func (c *conn) endRequests() {
	close(c.sentAll)
	if c.toServer.Flush() == nil && c.proxy.pass(c.cut) && !c.vanished.Load() {
		_ = c.server.CloseWrite()
	}
}

// cutNow closes both sides, but leaves the server's open while a request is held.
func (c *conn) cutNow() {
	c.mu.Lock()
	c.orphaned = true
	holding := c.holding
	c.mu.Unlock()
	if holding {
		_ = c.client.Close()
		return
	}
	c.close()
}

func (c *conn) close() {
	c.cutOnce.Do(func() { close(c.cut) })
	_ = c.client.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server != nil {
		_ = c.server.Close()
	}
}

// resetClient closes the client's side with a RST.
func (c *conn) resetClient() {
	_ = c.client.SetLinger(0)
	_ = c.client.Close()
}
