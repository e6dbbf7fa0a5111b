package inspect_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/rstream"
	"github.com/runnel-go/runnel/internal/testredis"
)

// diagnose returns what was found, by check; of several the worst, which comes first.
func diagnose(t *testing.T, o redis.Options) map[string]inspect.Diagnosis {
	t.Helper()
	rdb := redis.NewClient(&o)
	defer rdb.Close()
	c, err := rstream.Open(rstream.Options{Redis: rdb, Keys: keys.Keys{App: "shop", Layout: keys.Standalone}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	found, err := inspect.Diagnose(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]inspect.Diagnosis{}
	for _, d := range found {
		if _, there := by[d.Check]; !there {
			by[d.Check] = d
		}
	}
	return by
}

func TestDiagnoseTellsWhatIsWrong(t *testing.T) {
	tests := []struct {
		name         string
		config       map[string]string
		check, level string
		found        string
	}{
		{"no persistence", map[string]string{"save": "", "appendonly": "no"}, "persistence", "warning", "none"},
		{"snapshots", map[string]string{"save": "3600 1", "appendonly": "no"}, "persistence", "warning", "snapshots only"},
		{"append-only file", map[string]string{"appendonly": "yes"}, "persistence", "ok", "append-only file, fsync everysec"},
		{"evicts", map[string]string{"maxmemory": "1gb", "maxmemory-policy": "volatile-lru"}, "memory", "problem", "maxmemory-policy is volatile-lru, with maxmemory 1024 MiB"},
		{"would evict", map[string]string{"maxmemory": "0", "maxmemory-policy": "allkeys-lru"}, "memory", "warning", "nothing is evicted as long as"},
		{"nearly full", map[string]string{"maxmemory": "1mb", "maxmemory-policy": "noeviction"}, "memory", "warning", "MiB of 1 MiB are used"},
		{"room", map[string]string{"maxmemory": "1gb", "maxmemory-policy": "noeviction"}, "memory", "ok", "MiB of 1024 MiB are used"},
	}
	server := testredis.Start(t)
	rdb := server.Client(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for name, value := range tt.config {
				if err := rdb.ConfigSet(t.Context(), name, value).Err(); err != nil {
					t.Fatal(err)
				}
			}
			d := diagnose(t, redis.Options{Addr: server.Addr()})[tt.check]
			if d.Level != tt.level || !strings.Contains(d.Found, tt.found) || (d.Advice == "") != (d.Level == "ok") {
				t.Errorf("got %+v, want %s: %s", d, tt.level, tt.found)
			}
		})
	}
	all := diagnose(t, redis.Options{Addr: server.Addr()})
	for _, check := range []string{"version", "role", "clock", "rights", "replicas"} {
		if d := all[check]; d.Level != "ok" || d.Advice != "" {
			t.Errorf("%+v", d)
		}
	}
	if keys := rdb.Keys(t.Context(), "*").Val(); len(keys) > 1 || len(keys) == 1 && rdb.PTTL(t.Context(), keys[0]).Val() < 0 {
		t.Errorf("left behind: %v", keys)
	}
}

func TestDiagnoseReplicas(t *testing.T) {
	master := testredis.Start(t)
	replica := master.Replica(t)
	replica.WaitSync(t, master)
	if d := diagnose(t, redis.Options{Addr: master.Addr()})["replicas"]; d.Level != "warning" || !strings.Contains(d.Found, "1 connected, min-replicas-to-write is 0") {
		t.Errorf("%+v", d)
	}
	if err := master.Client(t).ConfigSet(t.Context(), "min-replicas-to-write", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if d := diagnose(t, redis.Options{Addr: master.Addr()})["replicas"]; d.Level != "ok" || !strings.Contains(d.Found, "min-replicas-to-write is 1") {
		t.Errorf("%+v", d)
	}
	if d := diagnose(t, redis.Options{Addr: replica.Addr()})["role"]; d.Level != "problem" || !strings.Contains(d.Found, "it is a replica of 127.0.0.1:") {
		t.Errorf("%+v", d)
	}
}

func TestDiagnoseRights(t *testing.T) {
	server := testredis.Start(t)
	rdb := server.Client(t)
	user := func(rules ...any) redis.Options {
		t.Helper()
		if err := rdb.Do(t.Context(), append([]any{"ACL", "SETUSER", "shop", "reset", "on", ">secret"}, rules...)...).Err(); err != nil {
			t.Fatal(err)
		}
		return redis.Options{Addr: server.Addr(), Username: "shop", Password: "secret"}
	}
	text, err := os.ReadFile("../../docs/delivery.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []any
	for _, rule := range strings.Fields(regexp.MustCompile(`(?m)^ACL SETUSER shop on >secret (.*)$`).FindStringSubmatch(string(text))[1]) {
		documented = append(documented, rule)
	}
	found := diagnose(t, user(documented...))
	if d := found["rights"]; d.Level != "warning" || !strings.Contains(d.Found, "CONFIG GET (without it doctor sees less)") || strings.Contains(d.Found, "CLIENT") {
		t.Errorf("as documented: %+v", d)
	}
	if d := found["persistence"]; d.Level != "warning" || !strings.Contains(d.Found, "snapshots only") {
		t.Errorf("as documented: %+v", d)
	}
	found = diagnose(t, user(append(documented, "-client", "-info")...))
	if d := found["rights"]; d.Level != "warning" || !strings.Contains(d.Found, "CLIENT UNBLOCK (without it") || !strings.Contains(d.Found, "INFO (without it") {
		t.Errorf("less: %+v", d)
	}
	if d := found["version"]; d.Level != "unknown" {
		t.Errorf("less: %+v", d)
	}
	for _, tt := range []struct {
		rules []any
		want  string
	}{
		{append(documented[:len(documented):len(documented)], "-xack"), "missing: XACK"},
		{[]any{"~__strm:*", "~__lock:*", "~__own:*", "~__meta:*", "%R~__rules:shop", "+@all"}, "write keys like __memb:shop.doctor.doctor"},
		{[]any{"~*:shop.*", "%R~__rules:shop", "+@all"}, "write keys like __meta:shop,"},
	} {
		if d := diagnose(t, user(tt.rules...))["rights"]; d.Level != "problem" || !strings.Contains(d.Found, tt.want) {
			t.Errorf("%v: %+v", tt.rules, d)
		}
	}
}
