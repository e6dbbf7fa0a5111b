package redisconn

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// turnAway makes a server accept no more connections until the test ends.
func turnAway(t *testing.T, s *redistest.Server) {
	t.Helper()
	conn := s.Client(t).Conn()
	if err := conn.Ping(t.Context()).Err(); err != nil { // its connection stays
		t.Fatal(err)
	}
	if err := conn.ConfigSet(t.Context(), "maxclients", "1").Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(conn.ConfigSet(context.Background(), "maxclients", "1000").Err(), conn.Close()); err != nil {
			t.Error(err)
		}
	})
}

// A server that accepts no more connections is distinguished from one that is not there.
func TestAServerThatTakesNoMoreConnections(t *testing.T) {
	srv := redistest.Start(t)
	turnAway(t, srv)
	for range 10 { // the client's error depends on timing
		told(t, Options{URL: srv.URL(), Keys: keys.Keys{App: "app"}}, "")
	}
}

// told checks that a client's error says so and names the server.
func told(t *testing.T, o Options, which string) {
	t.Helper()
	c, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = c.Check(t.Context())
	if !errors.As(err, new(*CrowdedError)) || !strings.Contains(err.Error(), which+full) || !strings.Contains(err.Error(), "reached: raise maxclients") {
		t.Errorf("Check: %v", err)
	}
}

func TestAMasterThatTakesNoMoreConnections(t *testing.T) {
	w := redistest.StartWatched(t, 1)
	turnAway(t, w.Master())
	for range 5 {
		told(t, Options{URL: w.URL(), Keys: example}, w.Master().Addr()+": ")
	}
}

func TestNodesThatTakeNoMoreConnections(t *testing.T) {
	k := redistest.StartCluster(t, 3, 0)
	o := Options{URL: k.URL(), Keys: keys.Keys{App: "shop", Layout: keys.Cluster}}
	turnAway(t, k.Nodes()[1])
	for range 5 {
		told(t, o, k.Nodes()[1].Addr()+": ")
	}
	turnAway(t, k.Nodes()[0])
	turnAway(t, k.Nodes()[2])
	for range 5 {
		told(t, o, ": ")
	}
}
