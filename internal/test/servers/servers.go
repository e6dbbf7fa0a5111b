// Package servers runs a test on both kinds of servers that the project works with.
package servers

import (
	"testing"

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
