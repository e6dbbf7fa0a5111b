package cli

import (
	"context"
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/inspect"
)

func TestDoctor(t *testing.T) {
	s := newShop(t, nil)
	for name, value := range map[string]string{"appendonly": "yes", "maxmemory": "0", "maxmemory-policy": "noeviction"} {
		s.configure(name, value)
	}
	r := s.run("doctor")
	r.want(t, 0, "ok       persistence: append-only file, fsync everysec\n", "")
	r.matches(t, `(?m)^ok       version: (Redis|Valkey) \d+\.`, `(?m)^ok       clock: that of Redis is -?\S+ off from the one here$`, `(?m)^ok       rights: all that a worker needs$`)
	if strings.Contains(r.out, "→") {
		t.Errorf("advice where all is well: %s", r.out)
	}
	s.configure("maxmemory", "1gb")
	s.configure("maxmemory-policy", "allkeys-lru")
	r = s.untyped("doctor")
	r.want(t, 3, "problem  memory: maxmemory-policy is allkeys-lru, with maxmemory 1024 MiB\n       → set maxmemory-policy noeviction: ", "")
	r = s.run("doctor", "--output", "json")
	if r.code != 3 {
		t.Errorf("exit code %d", r.code)
	}
	r.code = 0
	for _, d := range parse[[]inspect.Diagnosis](t, r) {
		if (d.Level == inspect.LevelOK) != (d.Check != "memory") {
			t.Errorf("%+v", d)
		}
	}
	s.run("doctor", "orders").want(t, 2, "", `unexpected argument "orders"`)
}

// doctor reports as unknown what the embedded server does not report.
func TestDoctorOfTheEmbeddedServer(t *testing.T) {
	r := run(context.Background(), nil, "", "doctor", "--dev", "--app", "shop")
	r.want(t, 0, "unknown  persistence: ", "a Redis inside this process")
}

// A server at its limit of connections is not reported as unreachable.
func TestDoctorOfACrowdedServer(t *testing.T) {
	s := newShop(t, nil)
	conn := s.rdb.Conn()
	defer conn.Close()
	if err := conn.ConfigSet(t.Context(), "maxclients", "1").Err(); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"doctor", "status"} {
		r := s.untyped(command)
		if r.code != 1 || !strings.Contains(r.err, "max number of clients reached") || strings.Contains(r.err, "start redis-server") {
			t.Errorf("%s: code %d, %s", command, r.code, r.err)
		}
	}
	if err := conn.ConfigSet(t.Context(), "maxclients", "1000").Err(); err != nil {
		t.Fatal(err)
	}
}
