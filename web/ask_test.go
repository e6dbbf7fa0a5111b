package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/store"
)

// A server's time limit for reading requests does not end a list.
func TestListsOutlastTheServersLimits(t *testing.T) {
	d := &dashboard{asks: make(chan struct{}, 1)}
	s := newShop(t, 1, nil)
	d.reg = s.server.Config.Handler.(*dashboard).reg
	server := httptest.NewUnstartedServer(d.ask(func(ctx context.Context, _ *store.Client, _ *http.Request) (any, error) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(300 * time.Millisecond):
			return "the list", nil
		}
	}))
	server.Config.ReadTimeout, server.Config.WriteTimeout = 50*time.Millisecond, 50*time.Millisecond
	server.Start()
	t.Cleanup(server.Close)
	s.server = server
	if resp, text := s.request(http.MethodGet, "/", ""); resp.StatusCode != http.StatusOK || text != `"the list"` {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}
