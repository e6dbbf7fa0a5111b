package security

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

var layouts = map[string]string{"standalone": keys.Standalone, "cluster": keys.Cluster}

// documented returns the commands of docs/security.md that create the users of a layout; the names
// are in the block of "standalone", for both.
func documented(t *testing.T, layout string) (lines []string) {
	t.Helper()
	if lines = block(t, "standalone"); layout == "standalone" {
		return lines
	}
	isKeys := func(line string) bool { return strings.Contains(line, " ~") || strings.Contains(line, " %") }
	return append(slices.DeleteFunc(lines, isKeys), block(t, layout)...)
}

// block returns the commands of docs/security.md for some users.
func block(t *testing.T, of string) []string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)<!-- users: " + of + " -->\n```text\n(.*?)```").FindStringSubmatch(string(text))
	if m == nil {
		t.Fatalf("docs/security.md has no rules for %s", of)
	}
	return strings.Split(strings.TrimSpace(m[1]), "\n")
}

// The documented rights are those that the code needs, no more.
func TestTheDocumentedRulesAreThoseOfTheCode(t *testing.T) {
	for name, layout := range layouts {
		c, err := store.Open(redisconn.Options{URL: "redis://127.0.0.1:1", Keys: keys.Keys{App: "shop", Layout: layout}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		said := map[string][]string{}
		for _, line := range documented(t, name) {
			words := strings.Fields(line)
			if len(words) < 4 || words[0] != "ACL" || words[1] != "SETUSER" {
				t.Fatalf("%s: %q", name, line)
			}
			said[words[2]] = append(said[words[2]], words[3:]...)
		}
		if len(said) != len(keys.Roles()) {
			t.Errorf("%s: %d users", name, len(said))
		}
		for role, r := range keys.Roles() {
			want := append([]string{"reset", "on", ">secret"}, c.Rule(r)...)
			got := said["shop-"+role]
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s, %s: the document says\n%q\nwant\n%q", name, role, got, want)
			}
		}
	}
}

// The document has the rights to the keys of each extension apart.
func TestTheDocumentedRulesOfExtensionsAreThoseOfTheCode(t *testing.T) {
	kinds := map[string]string{"stage": "set", "schedule": "schedule", "webhook": "bus", "table": store.Tables} // that have the keys of an extension
	for _, kind := range keys.Kinds {
		if kind.Extension != "" && kinds[kind.Extension] == "" {
			t.Errorf("no kind of streams is known here that has __%s", kind.Name)
		}
	}
	for name, layout := range layouts {
		for _, kind := range kinds {
			c, err := store.Open(redisconn.Options{URL: "redis://127.0.0.1:1", Keys: keys.Keys{App: "shop", Layout: layout}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			core := map[keys.Role][]string{}
			for _, r := range keys.Roles() {
				core[r] = c.Rule(r)
			}
			c.Uses(kind)
			said, users := block(t, name+", "+kind), 0
			for role, r := range keys.Roles() {
				more := slices.DeleteFunc(c.Rule(r), func(rule string) bool { return slices.Contains(core[r], rule) })
				if len(more) == 0 { // the role has no part in it
					continue
				}
				users++
				if want := "ACL SETUSER shop-" + role + " " + strings.Join(more, " "); !slices.Contains(said, want) {
					t.Errorf("%s: the document says\n%q\nwant\n%q", name, said, want)
				}
			}
			if len(said) != users {
				t.Errorf("%s: %d users, want %d", name, len(said), users)
			}
		}
	}
}

// guarded starts a server with the documented users, for one test.
func guarded(t *testing.T, layout string) (*redistest.Server, *redis.Client) {
	t.Helper()
	server := redistest.Start(t, guardedArguments...)
	guard(t, layout, server)
	return server, server.Client(t)
}

var guardedArguments = []string{"--requirepass", "for-administrators", "--acllog-max-len", "1000"}

// guard creates the documented users on each server.
func guard(t *testing.T, layout string, servers ...*redistest.Server) {
	t.Helper()
	for _, server := range servers {
		admin := server.Client(t)
		for _, line := range documented(t, layout) {
			do(t, admin, line)
		}
	}
}

// do runs a command written as in redis-cli.
func do(t *testing.T, rdb *redis.Client, line string) {
	t.Helper()
	var args []any
	for _, word := range strings.Fields(line) {
		args = append(args, word)
	}
	if err := rdb.Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
}

func urlOf(server *redistest.Server, user string) string {
	return fmt.Sprintf("redis://%s:secret@%s", user, server.Addr())
}

// A database other than the first needs one more right, and an error says so.
func TestAnotherDatabaseTakesSelect(t *testing.T) {
	server, admin := guarded(t, "standalone")
	try := func() error {
		c, err := store.Open(redisconn.Options{URL: urlOf(server, "shop-worker") + "/2", Keys: keys.Keys{App: "shop", Layout: keys.Standalone}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return errors.Join(c.Check(t.Context()), c.CheckRights(t.Context(), keys.Work))
	}
	if err := try(); err == nil || !strings.Contains(err.Error(), `user "shop-worker": NOPERM`) || !strings.Contains(err.Error(), "select") {
		t.Errorf("without: %v", err)
	}
	do(t, admin, "ACL SETUSER shop-worker +select")
	if err := try(); err != nil {
		t.Errorf("with it: %v", err)
	}
}

// The document lists what a producer may do to its app besides sending. A command refused here must
// leave the table.
func TestAProducerMayDoWhatIsSaidOfIt(t *testing.T) {
	for layout, of := range layouts {
		server, admin := guarded(t, layout)
		k := keys.Keys{App: "shop", Layout: of}
		log, own := k.Partition("orders", 0), k.Ownership("orders", "printer", 0)
		do(t, admin, "XADD "+log+" 1-1 a b")
		do(t, admin, "XGROUP CREATE "+log+" printer@a 0")
		rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "shop-producer", Password: "secret", Protocol: 2, DisableIdentity: true})
		defer rdb.Close()
		for _, line := range []string{
			"XRANGE " + log + " - +", "HSET " + own + " epoch 7", "HGETALL " + own, "XGROUP SETID " + log + " printer@a $", "XTRIM " + log + " MAXLEN 0",
			"HSET " + k.Meta("orders") + " a b", "PEXPIRE " + own + " 1", "PEXPIRE " + k.Meta("orders") + " 1", "PEXPIRE " + log + " 1", "SET " + k.Partition("orders", 3) + " x",
			"ZADD " + k.Delayed("orders", 0).Due + " 1 a", "XADD " + k.Control("orders", "printer") + " * a b",
		} {
			do(t, rdb, line)
		}
	}
}

// Everything outside the app or the role is refused.
func TestTheDocumentedUsersMayDoNothingElse(t *testing.T) {
	for layout, of := range layouts {
		server, admin := guarded(t, layout)
		k, other := keys.Keys{App: "shop", Layout: of}, keys.Keys{App: "other", Layout: of}
		never := []string{
			"FLUSHALL", "FLUSHDB", "CONFIG SET maxmemory 1", "CONFIG GET requirepass", "KEYS *", "SCAN 0", "ACL LIST", "ACL WHOAMI",
			"SHUTDOWN NOSAVE", "MONITOR", "SCRIPT FLUSH", "FUNCTION FLUSH", "REPLICAOF NO ONE", "SAVE", "CLIENT LIST", "SUBSCRIBE x", "PUBLISH x y",
			"GET secret", "SET secret 1", "GET shop", "HSET " + other.Meta("orders") + " a b", "XADD " + other.Partition("orders", 0) + " * a b",
			"GET " + other.Meta("orders"), "EVAL " + other.Lock("orders", "printer", 0), "GET " + other.Once("orders", 0, "shop.x"),
			"XREAD STREAMS " + keys.Keys{App: "shop2", Layout: of}.Partition("orders", 0) + " 0",
		}
		refused := map[string][]string{
			"producer": {"XREADGROUP GROUP g c STREAMS " + k.Partition("orders", 0) + " >", "DEL " + k.Partition("orders", 0), "HSET " + k.Rules() + " a b",
				"GET " + k.Lock("orders", "printer", 0), "XADD " + k.Audit() + " * a b", "CLIENT KILL ID 1", "XRANGE " + k.Dead("orders", "printer", 0) + " - +", "HGETALL " + k.Parked("orders", "printer", 0), "HGETALL " + k.Retry("orders", "printer", 0),
				"SET " + k.Lock("orders", "printer", 0) + " a", "SET " + k.Membership("orders", "printer") + " a", "SET " + k.Beat("orders", "printer", "a") + " a", "SET " + k.Leader() + " a", "SET " + k.Rules() + " a",
				"XACK " + k.Partition("orders", 0) + " g 0-1", "XDEL " + k.Partition("orders", 0) + " 0-1", "UNLINK " + k.Partition("orders", 0),
				"XGROUP DESTROY " + k.Partition("orders", 0) + " g", "XGROUP CREATE " + k.Partition("orders", 0) + " g 0", "RENAME " + k.Partition("orders", 0) + " " + k.Partition("orders", 1),
				"HSET " + k.Tasks() + " a b", "XRANGE " + k.Audit() + " - +"},
			"worker":  {"HSET " + k.Rules() + " a b", "XADD " + k.Audit() + " * a b", "XDEL " + k.Partition("orders", 0) + " 0-1", "UNLINK " + k.Partition("orders", 0)},
			"watcher": {"XADD " + k.Partition("orders", 0) + " * a b", "DEL " + k.Lock("orders", "printer", 0), "HSET " + k.Rules() + " a b", "SET " + k.Meta("orders") + " a"},
			"operator": {"XREADGROUP GROUP g c STREAMS " + k.Partition("orders", 0) + " >", "XACK " + k.Partition("orders", 0) + " g 0-1",
				"CLIENT KILL ID 1", "HSET " + k.Tasks() + " a b"},
		}
		for role, more := range refused {
			rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "shop-" + role, Password: "secret", Protocol: 2, DisableIdentity: true})
			defer rdb.Close()
			for _, line := range append(slices.Clone(never), more...) {
				var args []any
				for _, word := range strings.Fields(line) {
					args = append(args, word)
				}
				if args[0] == "EVAL" {
					args = []any{"EVAL", "return 1", 1, args[1]}
				}
				if err := rdb.Do(t.Context(), args...).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
					t.Errorf("%s, %s: %s: %v", layout, role, line, err)
				}
			}
		}
		if n := admin.DBSize(t.Context()).Val(); n != 0 {
			t.Errorf("%d keys were written", n)
		}
	}
}
