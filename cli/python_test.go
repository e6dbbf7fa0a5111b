package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
)

const pythonExecutor = "iqzhn8WjQjSLPZZU3iBIAA"

// python stores what a worker of Python's runnel keeps while it runs orders/printer.
func (s *shop) python(life time.Duration) {
	s.t.Helper()
	ctx, orders := s.t.Context(), s.app.Name()+".orders"
	for key, value := range map[string]string{
		"__memb:" + orders + ".printer":                   `{"` + pythonExecutor + `": {"joined_at": "2026-11-23T02:48:55.296746", "partitions": [0, 1]}}`,
		"__beat:" + orders + ".printer." + pythonExecutor: "beat",
		"__lock:" + orders + ".printer.0":                 pythonExecutor,
	} {
		ttl := life
		if strings.HasPrefix(key, "__memb") {
			ttl = 0
		}
		if err := s.rdb.Set(ctx, key, value, ttl).Err(); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := s.rdb.XGroupCreateMkStream(ctx, "__strm:"+orders+".0", "printer", "0").Err(); err != nil {
		s.t.Fatal(err)
	}
}

// A processor that is registered here while Python's runnel runs it is shown as what it
// is, and its registration can be removed under the worker in Python.
func TestProcessorThatPythonRuns(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 2})
	s.registered()
	s.python(time.Minute)
	for _, args := range [][]string{{"status"}, {"members"}, {"processor", "info", "orders/printer"}} {
		s.untyped(args...).want(t, 0, "Python's runnel", "")
	}
	s.untyped("processor", "ls").want(t, 0, "orders/printer", "")
	s.untyped("stream", "rm", "orders", "--yes").want(t, 1, "", "orders/printer is run by worker Python's runnel: stop it first; nothing was changed")
	s.untyped("processor", "move", "orders/printer", "0", "Python's runnel").want(t, 1, "", pythonExecutor)
	s.untyped("processor", "rm", "orders/printer").want(t, 0, "orders/printer is no processor of this app any more; Python's runnel, which runs it, goes on", "")
	if list := told[[]listedProcessor](s, "processor", "ls"); len(list) != 0 {
		t.Errorf("still registered: %+v", list)
	}
	if n := s.rdb.Exists(t.Context(), "__memb:"+s.app.Name()+".orders.printer", "__lock:"+s.app.Name()+".orders.printer.0").Val(); n != 2 {
		t.Errorf("%d of 2 keys of Python's are left", n)
	}
	if g := s.rdb.XInfoGroups(t.Context(), "__strm:"+s.app.Name()+".orders.0").Val(); len(g) == 0 || g[0].Name != "printer" {
		t.Errorf("Python's consumer group: %+v", g)
	}
}
