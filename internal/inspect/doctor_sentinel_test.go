package inspect_test

import (
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// Doctor reports on sentinels, and on replicas that have to confirm.
func TestDiagnoseSentinels(t *testing.T) {
	w := redistest.StartWatched(t, 1)
	found := func(url string, least int, check, level, text string) {
		t.Helper()
		c, err := store.Open(redisconn.Options{
			URL: url, Keys: keys.Keys{App: "shop", Layout: keys.Standalone},
			MinReplicas: least, ReplicationTimeout: time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		all, err := inspect.Diagnose(t.Context(), c, keys.Work)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range all {
			if d.Check == check {
				if d.Level != level || !strings.Contains(d.Found, text) || (d.Advice == "") != (level == "ok") {
					t.Errorf("got %+v, want %s: %s", d, level, text)
				}
				return
			}
		}
		if level != "" {
			t.Errorf("no diagnosis of %s", check)
		}
	}
	found(w.URL(), 0, "sentinels", "ok", "3 of 3 were asked: the master is "+w.Master().Addr()+", with 1 replicas")
	found(w.URL(), 0, "role", "ok", "a master")
	found(w.URL(), 0, "rights", "ok", "all that a worker needs")
	found(w.URL(), 0, "replicas", "warning", "min-replicas-to-write is 0")
	found(w.URL(), 1, "replicas", "warning", "1 connected, and all of them have to confirm")
	found(w.URL(), 2, "replicas", "problem", "1 connected, and 2 have to confirm")
	found(w.URL(), 2, "rights", "ok", "all that a worker needs")
	found(w.Master().URL(), 0, "sentinels", "", "")
	w.Sentinels()[1].Kill()
	found(w.URL(), 0, "sentinels", "warning", "no answer: "+w.Sentinels()[1].Addr()+" (")
}
