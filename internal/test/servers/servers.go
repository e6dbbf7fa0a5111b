// Package servers runs a test on both kinds of servers that the project supports.
package servers

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/embedded"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// Both runs a test on a redis-server, which is real, and on the embedded server.
func Both(t *testing.T, test func(t *testing.T, addr string, real bool)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) { test(t, redistest.Start(t).Addr(), true) })
	t.Run("embedded", func(t *testing.T) {
		s, err := embedded.Start("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		test(t, s.Addr(), false)
	})
}

// Interrupted repeats Interrupt of a reader until its read has answered, as its callers do.
func Interrupted(t *testing.T, r interface{ Interrupt(context.Context) error }, answered <-chan error) error {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if err := r.Interrupt(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-answered:
			return err
		case <-time.After(5 * time.Millisecond):
		}
	}
	t.Fatal("the read did not answer within 10 s")
	return nil
}

// A DeafConn loses replies: the server executes a request, and then the connection breaks.
type DeafConn struct{ net.Conn }

// Read takes a reply away and closes the connection.
func (c DeafConn) Read(b []byte) (int, error) {
	c.Conn.Read(b)
	c.Conn.Close()
	return 0, io.ErrUnexpectedEOF
}
