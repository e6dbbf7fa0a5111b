package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

func TestMoveLayoutRefusesMistakes(t *testing.T) {
	t.Setenv("RUNNEL_REDIS_URL", "redis://127.0.0.1:1")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"orders"}, "all streams of an app are moved together"},
		{[]string{"--to", ""}, "--to is a URL"},
		{[]string{"--to", "redis://127.0.0.1:1", "--back"}, "--back and --to exclude each other"},
		{[]string{"--delete"}, "--delete is for --to"},
		{[]string{"--to", "nonsense"}, `redis URL "***" is malformed`},
		{[]string{"--redis-url", "redis+cluster://127.0.0.1:1"}, "this is a Redis Cluster"},
	} {
		run(t.Context(), nil, "", append([]string{"stream", "move-layout", "--yes", "--app", "shop"}, tt.args...)...).want(t, 2, "", tt.want)
	}
	run(t.Context(), nil, "", "stream", "move-layout", "--yes", "--app", "shop").want(t, 1, "", "no Redis at 127.0.0.1:1")
}

func TestMoveLayout(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 2, KeyField: "customer"})
	s.untyped("stream", "move-layout", "--yes").want(t, 0, "nothing to move", "")
	s.send(4)
	if _, err := s.orders.SendEvents(t.Context(), runnel.Outgoing[order]{Record: order{Customer: "late"}, After: time.Hour, DedupID: "a"}); err != nil {
		t.Fatal(err)
	}
	dry := printed[movedLayout](s, "stream", "move-layout", "--yes", "--dry-run")
	if dry.To != "cluster" || !dry.DryRun || dry.Moved || dry.Resumed || dry.Redis == "" || len(dry.Kinds) != 4 {
		t.Errorf("%+v", dry)
	}
	items := map[string]int64{}
	for _, k := range dry.Kinds {
		items[k.Kind] = k.Items
		if k.Keys < 1 || k.Bytes < 1 {
			t.Errorf("%+v", k)
		}
	}
	if items["partitions"] != 4 || items["delayed"] != 1 || items["sent ids"] != 1 || items["metadata"] != 1 {
		t.Errorf("%v", items)
	}
	s.run("stream", "verify", "orders").want(t, 0, "total      4", "")

	r := s.untyped("stream", "move-layout", "--yes")
	r.want(t, 0, "all keys have their cluster names: set RUNNEL_KEY_LAYOUT=cluster", "partitions renamed …\n")
	if !strings.HasPrefix(r.out, "KIND ") {
		t.Errorf("%q", r.out)
	}
	s.run("stream", "verify", "orders").want(t, 1, "", "set RUNNEL_KEY_LAYOUT=cluster")
	s.run("send", "orders", `{"customer":"ada"}`).want(t, 1, "", "this process is set to standalone")
	s.untyped("stream", "move-layout", "--yes").want(t, 0, "nothing to move", "")
	t.Setenv("RUNNEL_KEY_LAYOUT", "cluster")
	s.untyped("stream", "verify", "orders").want(t, 0, "total      4", "")
	s.untyped("stream", "move-layout", "--yes").want(t, 0, "nothing to move", "")
	s.untyped("stream", "move-layout", "--yes", "--back").want(t, 0, "all keys have their standalone names", "renamed …")
	s.untyped("stream", "verify", "orders").want(t, 1, "", "set RUNNEL_KEY_LAYOUT=standalone")
}

func TestMoveLayoutToAnotherServer(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 2, KeyField: "customer"})
	s.send(4)
	other := redistest.Start(t)
	moved := parse[movedLayout](t, s.onlyOut("stream", "move-layout", "--yes", "--output", "json", "--to", other.URL()))
	if moved.Target != other.Addr() || !moved.Moved {
		t.Errorf("%+v", moved)
	}
	s.untyped("send", "orders", `{"customer":"ada"}`).want(t, 1, "", "its keys were moved to the redis at "+other.Addr())
	s.untyped("stream", "move-layout", "--yes", "--to", "redis://127.0.0.1:1").want(t, 1, "", "its keys were moved to the redis at "+other.Addr()+" already")
	s.untyped("stream", "move-layout", "--yes", "--to", other.URL(), "--delete").want(t, 0, "all keys are at "+other.Addr(), "deleted …")
	t.Setenv("RUNNEL_KEY_LAYOUT", "cluster")
	t.Setenv("RUNNEL_REDIS_URL", other.URL())
	s.untyped("stream", "verify", "orders").want(t, 0, "total      4", "")
	s.untyped("send", "orders", `{"customer":"ada"}`).want(t, 0, "orders", "")
}

// onlyOut is untyped without stderr.
func (s *shop) onlyOut(args ...string) result {
	r := s.untyped(args...)
	r.err = ""
	return r
}

// Doctor does not advise to delete the rules' key that a move left.
func TestDoctorKnowsWhatAMoveLeft(t *testing.T) {
	s := newShop(t, nil)
	s.registered()
	s.run("stream", "move-layout", "--yes").want(t, 0, "RUNNEL_KEY_LAYOUT=cluster", "renamed")
	s.untyped("doctor").want(t, 3, "GET __rules:shop tells whether `stream move-layout` has left it: then set RUNNEL_KEY_LAYOUT", "")
	s.untyped("rules", "ls").want(t, 1, "", "then set RUNNEL_KEY_LAYOUT")
}
