package rstream

import (
	"io"
	"net"
)

// deafConn loses the replies: what was sent is executed, and then the
// connection is broken.
type deafConn struct{ net.Conn }

func (c deafConn) Read(b []byte) (int, error) {
	c.Conn.Read(b)
	c.Conn.Close()
	return 0, io.ErrUnexpectedEOF
}

// heldConn is half-open: it is broken for us, and the server does not notice.
type heldConn struct {
	net.Conn
	held <-chan struct{}
}

func (c heldConn) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func (c heldConn) Close() error {
	go func() {
		<-c.held
		c.Conn.Close()
	}()
	return nil
}

// switchConn is a deafConn while *deaf is true.
type switchConn struct {
	net.Conn
	deaf *bool
}

func (c *switchConn) Read(b []byte) (int, error) {
	if *c.deaf {
		return deafConn{c.Conn}.Read(b)
	}
	return c.Conn.Read(b)
}
