package cli

import (
	"strings"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

func TestWrongPassword(t *testing.T) {
	server := redistest.Start(t, "--requirepass", "secret")
	r := run(t.Context(), newShopApp(), "", "worker", "--redis-url", "redis://:geheim@"+server.Addr())
	r.want(t, 1, "", "wrong user name or password")
	if strings.Contains(r.err, "geheim") {
		t.Errorf("shows the password: %s", r.err)
	}
	run(t.Context(), newShopApp(), "", "status", "--redis-url", "redis://"+server.Addr()).want(t, 1, "", "a password is required")
	run(t.Context(), newShopApp(), "", "status", "--redis-url", "redis://localhost:port").want(t, 1, "", `redis URL "redis://***" is malformed; want redis://host:6379`)
	run(t.Context(), newShopApp(), "", "status", "--redis-url", "nonsense").want(t, 1, "", `redis URL "***" is malformed`)
}

func TestNoServer(t *testing.T) {
	const url = "redis://user:secret@127.0.0.1:1"
	for _, args := range []string{"send orders {}", "sendmany orders -", "status", "processor reset a/b --to end", "worker"} {
		t.Run(args, func(t *testing.T) {
			r := run(t.Context(), newShopApp(), "", append(strings.Fields(args), "--redis-url", url)...)
			r.want(t, 1, "", "no Redis at 127.0.0.1:1 (connect: connection refused)")
			lines := strings.Split(strings.TrimSpace(r.err), "\n")
			for _, hint := range []string{"start redis-server", "--redis-url", "RUNNEL_REDIS_URL", "--dev"} {
				if !strings.Contains(lines[len(lines)-1], hint) {
					t.Errorf("no %q in %q", hint, r.err)
				}
			}
			if len(lines) != 1 || strings.Contains(r.err, "secret") {
				t.Errorf("%q", r.err)
			}
		})
	}
}

// newShopApp returns an app that needs no server.
func newShopApp() *runnel.App {
	app := runnel.New("shop", nil)
	runnel.NewStream(app, "orders", func(o order) string { return o.Customer }, nil)
	return app
}
