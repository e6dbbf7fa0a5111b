package rstream

import (
	"errors"
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/testredis"
)

// A server that takes no more connections is told apart from one that is not there.
func TestAServerThatTakesNoMoreConnections(t *testing.T) {
	srv := testredis.Start(t)
	admin := srv.Client(t)
	conn := admin.Conn()
	defer conn.Close()
	if err := conn.Ping(t.Context()).Err(); err != nil { // its connection stays
		t.Fatal(err)
	}
	if err := conn.ConfigSet(t.Context(), "maxclients", "1").Err(); err != nil {
		t.Fatal(err)
	}
	for range 10 { // what its client sees depends on what comes first
		c, err := Open(Options{URL: srv.URL(), Keys: keys.Keys{App: "app"}})
		if err != nil {
			t.Fatal(err)
		}
		err = c.Check(t.Context())
		var crowded *CrowdedError
		if !errors.As(err, &crowded) || !strings.Contains(err.Error(), "ERR max number of clients reached: raise maxclients") {
			t.Errorf("Check: %v", err)
		}
		c.Close()
	}
	if err := conn.ConfigSet(t.Context(), "maxclients", "100").Err(); err != nil {
		t.Fatal(err)
	}
}
