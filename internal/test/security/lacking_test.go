package security

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// keysOf returns some keys, and their orders with the numbers from to before to.
func keysOf(from, to int) (keys []string, all []order) {
	for i := range 12 {
		keys = append(keys, fmt.Sprint("k", i))
	}
	for seq := from; seq < to; seq++ {
		for _, key := range keys {
			all = append(all, order{key, seq})
		}
	}
	return keys, all
}

// Hosted servers often withhold commands. Workers do without the dispensable ones: events continue
// in order and without loss through a takeover, a handover and a stop, and after the server forgot
// its scripts.
func TestWorkersDoWithoutDispensableRights(t *testing.T) {
	tests := []struct{ name, without string }{
		{"client kill", "-client|kill"},
		{"client unblock", "-client|unblock"},
		{"client id", "-client|id"},
		{"client", "-client|id -client|kill -client|unblock"},
		{"info", "-info"},
		{"xclaim", "-xclaim"},
		{"script, config, object, memory, wait", "+@all -script -config -object -memory -wait -@admin -@dangerous +info"},
		{"transactions", "-@transaction"},
		{"all of them", "-client|id -client|kill -client|unblock -info -xclaim -@transaction"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, "standalone")
			do(t, s.server.Client(t), "ACL SETUSER shop-worker "+tt.without)
			s.storm()
		})
	}
}

// storm makes workers join, die, and stop while events come.
func (s *scene) storm() {
	s.t.Helper()
	_, sender := s.app("shop-producer")
	first := s.process("first", "shop-worker")
	s.process("second", "shop-worker") // the first one hands partitions over
	keys, orders := keysOf(0, 20)
	s.must(sender.orders.Send(s.t.Context(), orders...))
	s.await("the first orders", func() bool { return len(s.did("orders", "k0")) > 5 })
	s.must(first.Process.Kill())
	s.must(s.admin.ScriptFlush(s.t.Context()).Err())
	_, orders = keysOf(20, 40)
	s.must(sender.orders.Send(s.t.Context(), orders...))
	s.await("the orders of the dead worker", func() bool { return s.all("orders", keys, 30) })

	app, _ := s.app("shop-worker")
	ctx, stop := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	s.await("a third worker to own its share", func() bool { return app.Ready() == nil })
	_, orders = keysOf(40, 60)
	s.must(sender.orders.Send(s.t.Context(), orders...))
	s.await("orders of the three", func() bool { return s.all("orders", keys, 45) })
	stop()
	if err := <-ended; err != nil {
		s.t.Errorf("the third worker stops: %v", err)
	}
	s.await("all orders", func() bool { return s.all("orders", keys, 60) })
	s.inOrder("orders", keys, 60)
}

func (s *scene) all(stream string, keys []string, n int) bool {
	for _, key := range keys {
		if len(s.did(stream, key)) < n {
			return false
		}
	}
	return true
}

// Without an indispensable right a worker does not start, and the error says what grants the right.
func TestAWorkerWithoutIndispensableRightsDoesNotStart(t *testing.T) {
	tests := []struct{ without, want string }{
		{"-eval", `scripts are not available to user "shop-worker"`},
		{"-evalsha", `user "shop-worker" lacks rights that a worker needs: EVALSHA; let an administrator say: ACL SETUSER shop-worker +evalsha; see docs/troubleshooting.md#missing-rights`},
		{"-xreadgroup", "XREADGROUP; let an administrator say: ACL SETUSER shop-worker +xreadgroup;"},
		{"-xgroup|create -xgroup|destroy -xgroup|setid", "ACL SETUSER shop-worker +xgroup|create +xgroup|destroy +xgroup|setid; see docs/"},
		{"-xinfo|stream -xinfo|groups", "needs: XINFO STREAM, XINFO GROUPS; "},
		{"resetkeys ~__strm:shop.*", "needs: keys __duedata:shop.*, "},
	}
	s := newScene(t, "standalone")
	for _, tt := range tests {
		guard(t, "standalone", s.server)
		do(t, s.server.Client(t), "ACL SETUSER shop-worker "+tt.without)
		app, _ := s.app("shop-worker")
		err := app.Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), s.server.Addr()) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %s", tt.without, err, tt.want)
		}
	}
	if n := s.admin.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys were written", n)
	}
}
