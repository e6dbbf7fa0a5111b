package inspect_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// diagnose returns the diagnoses by check, the worst of each.
func diagnose(t *testing.T, o redis.Options) map[string]inspect.Diagnosis {
	t.Helper()
	rdb := redis.NewClient(&o)
	defer rdb.Close()
	c, err := store.Open(redisconn.Options{Redis: rdb, Keys: keys.Keys{App: "shop", Layout: keys.Standalone}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	found, err := inspect.Diagnose(t.Context(), c, keys.Work)
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

func TestDiagnoseWarnsBeforeAServerIsFull(t *testing.T) {
	server := redistest.Start(t)
	rdb := server.Client(t)
	if err := rdb.Set(t.Context(), "filler", strings.Repeat("x", 32<<20), 0).Err(); err != nil { // dwarfs the memory of connections
		t.Fatal(err)
	}
	used, err := strconv.ParseFloat(rdb.InfoMap(t.Context(), "memory").Item("Memory", "used_memory"), 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := rdb.ConfigSet(t.Context(), "maxmemory", strconv.FormatFloat(used/0.95, 'f', 0, 64)).Err(); err != nil {
		t.Fatal(err)
	}
	if d := diagnose(t, redis.Options{Addr: server.Addr()})["memory"]; d.Level != inspect.LevelWarning || !strings.Contains(d.Advice, "a full server refuses sends") {
		t.Errorf("%+v", d)
	}
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
		{"full", map[string]string{"maxmemory": "1mb", "maxmemory-policy": "noeviction"}, "memory", "problem", "MiB of 1 MiB are used: it refuses what is sent"},
		{"room", map[string]string{"maxmemory": "1gb", "maxmemory-policy": "noeviction"}, "memory", "ok", "MiB of 1024 MiB are used"},
	}
	server := redistest.Start(t)
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
	master := redistest.Start(t)
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

// Each unreadable key is reported once, with its name and what to do.
func TestDiagnoseNamesKeysThatCannotBeRead(t *testing.T) {
	server, ctx := redistest.Start(t), t.Context()
	c, err := store.Open(redisconn.Options{URL: server.URL(), Keys: keys.Keys{App: "shop", Layout: keys.Standalone}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for stream, processors := range map[string][]string{"orders": {"printer"}, "returns": nil, "many": {"a", "b"}} {
		if _, err := c.EnsureMeta(ctx, stream, store.Meta{Partitions: 4, Processors: processors}); err != nil {
			t.Fatal(err)
		}
	}
	app := func() (out []inspect.Diagnosis) {
		t.Helper()
		all, err := inspect.Diagnose(ctx, c, keys.Work)
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(all, func(d inspect.Diagnosis) bool { return d.Check != "app" })
	}
	if all := app(); len(all) != 1 || all[0].Level != inspect.LevelOK {
		t.Errorf("a readable app: %+v", all)
	}
	rdb := server.Client(t)
	for _, tt := range []struct {
		key, remedy string
		spoil       func(key string) error
	}{
		{c.Keys().Leader(), "delete or rename it", func(key string) error { return rdb.RPush(ctx, key, "x").Err() }},
		{c.Partition("orders", "printer", 2).Log, "delete or rename it", func(key string) error { return rdb.Set(ctx, key, "x", 0).Err() }},
		{c.Partition("orders", "printer", 1).Own, "DEL that key", func(key string) error { return rdb.HSet(ctx, key, "epoch", "garbage").Err() }},
		{c.Partition("returns", "", 3).Log, "delete or rename it", func(key string) error { return rdb.Set(ctx, key, "x", 0).Err() }},
	} {
		if err := tt.spoil(tt.key); err != nil {
			t.Fatal(err)
		}
		if all := app(); len(all) != 1 || all[0].Level != inspect.LevelProblem || strings.Count(all[0].Found, tt.key) != 1 || !strings.Contains(all[0].Found, tt.remedy) {
			t.Errorf("%s: %+v", tt.key, all)
		}
		if err := rdb.Del(ctx, tt.key).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 4 { // eight findings, for each is of two processors
		if err := rdb.Set(ctx, c.Partition("many", "a", n).Log, "x", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if all := app(); len(all) != 6 || !strings.Contains(all[5].Found, "and 3 more") {
		t.Errorf("many partitions: %+v", all)
	}
}

// found returns the findings of a user with these rules, as lines.
func found(t *testing.T, server *redistest.Server, role keys.Role, layout string, rules func(*store.Client) []string) string {
	t.Helper()
	c, err := store.Open(redisconn.Options{
		URL: "redis://shop:secret@" + server.Addr(), Keys: keys.Keys{App: "shop", Layout: layout},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	args := []any{"ACL", "SETUSER", "shop", "reset", "on", ">secret"}
	for _, rule := range rules(c) {
		args = append(args, rule)
	}
	if err := server.Client(t).Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
	all, err := inspect.Diagnose(t.Context(), c, role)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, d := range all {
		fmt.Fprintf(&out, "%s %s: %s → %s\n", d.Level, d.Check, d.Found, d.Advice)
	}
	return out.String()
}

// Rights to the keys of an extension are asked for where the metadata, or the app, has such streams.
func TestDiagnoseRightsToKeysOfExtensions(t *testing.T) {
	server := redistest.Start(t)
	ask := func(role keys.Role, sets bool) string {
		return found(t, server, role, keys.Standalone, func(c *store.Client) []string {
			if sets {
				c.Uses("set")
			}
			return c.Rule(role)
		})
	}
	for name, role := range keys.Roles() {
		if got := ask(role, false); strings.Contains(got, "__ent") {
			t.Errorf("%s of an app without sets: %s", name, got)
		}
	}
	root, err := store.Open(redisconn.Options{URL: server.URL(), Keys: keys.Keys{App: "shop", Layout: keys.Standalone}})
	if err == nil {
		_, err = root.EnsureMeta(t.Context(), "listings", store.Meta{Partitions: 4, Kind: "set"})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, role := range keys.Roles() {
		if got := ask(role, false); !strings.Contains(got, "problem rights: "+role.Indefinite()+" needs, and this user lacks: ") || !strings.Contains(got, "keys __ent:shop.*, ") || !strings.Contains(got, "~__ent:shop.*") {
			t.Errorf("%s: %s", name, got)
		}
		if got := ask(role, true); strings.Contains(got, "problem rights") {
			t.Errorf("%s with all rights: %s", name, got)
		}
	}
}

// A user with exactly the rights of a role lacks nothing, and diagnoses that need more rights are
// unknown. Each missing right is named, with the rule that grants it.
func TestDiagnoseRights(t *testing.T) {
	server := redistest.Start(t)
	for _, layout := range []string{keys.Standalone, keys.Cluster} {
		for name, role := range keys.Roles() {
			got := found(t, server, role, layout, func(c *store.Client) []string { return c.Rule(role) })
			if strings.Contains(got, "problem") || strings.Count(got, " rights: ") != 1 ||
				!strings.Contains(got, "warning rights: no CONFIG GET: doctor cannot tell what is set") {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
	for _, tt := range []struct {
		rules []string
		want  []string
	}{
		{[]string{"+@all", "~*", "-xack"}, []string{"problem rights: a worker needs, and this user lacks: XACK → ACL SETUSER shop +xack; see docs/troubleshooting.md#missing-rights"}},
		{[]string{"+@all", "~*:shop.*", "%R~__rules:shop"}, []string{"problem rights: a worker needs, and this user lacks: keys __ctrl:shop, keys __task:shop, keys __leader:shop, keys __meta:shop, keys __meta:{shop}.*, keys __lead:shop, keys __block:shop → ACL SETUSER shop ~__ctrl:shop ~__task:shop "}},
		{[]string{"+@all", "~*", "-client", "-info", "-config"}, []string{
			"ok version: " + redistest.Version(t), "unknown persistence", "unknown memory", "unknown replicas",
			"warning rights: no CLIENT ID: CLIENT UNBLOCK and CLIENT KILL cannot be used → ACL SETUSER shop +client|id;",
			"warning rights: no CLIENT UNBLOCK: partitions are handed over later", "warning rights: no CLIENT KILL: a worker whose connection breaks has to join anew",
			"warning rights: no INFO: the state of the server is not checked", "warning rights: no CONFIG GET",
		}},
		{[]string{"+@all", "~*", "-script", "-object", "-wait"}, []string{"ok rights: all that a worker needs"}},
	} {
		got := found(t, server, keys.Work, keys.Standalone, func(*store.Client) []string { return tt.rules })
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%q: no %q in %s", tt.rules, want, got)
			}
		}
	}
}
