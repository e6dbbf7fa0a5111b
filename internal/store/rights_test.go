package store

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// Every command that scripts call has a right, and every right is used.
func TestRightsAreWhatIsCalled(t *testing.T) {
	c, err := Open(redisconn.Options{URL: "redis://127.0.0.1:1", Keys: example})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, kind := range []string{"set", "schedule", "bus", Tables} {
		c.Uses(kind)
	}
	tried := map[string]bool{}
	for _, r := range c.Rights() {
		tried[r.Name] = true
	}
	files, _ := filepath.Glob("lua/*.lua")
	more, _ := filepath.Glob("../*/lua/*.lua")
	more = slices.DeleteFunc(more, func(path string) bool { return strings.Contains(path, "keymigrate") }) // who moves all keys may do all
	called := regexp.MustCompile(`(?:\bp?call|try)\('([A-Z]+)'(?:, '([A-Z]+)')?`)                          // try is shared.lua's
	scripts := map[string]bool{"GETRANGE": true}                                                           // redislock's
	for _, path := range more {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range called.FindAllStringSubmatch(string(text), -1) {
			right := strings.TrimSpace(m[1] + " " + m[2])
			if scripts[right] = true; !tried[right] {
				t.Errorf("%s calls %s, which is no right", path, right)
			}
		}
	}
	if len(files) < 20 || len(more) < len(files)+20 {
		t.Errorf("%d and %d scripts", len(files), len(more))
	}
	plain := strings.Fields("@transaction PING EVAL EVALSHA INFO UNLINK HSCAN XREAD XREADGROUP ASKING ROLE WAIT")
	for name := range tried {
		first, _, _ := strings.Cut(name, " ")
		if first != "keys" && first != "CLIENT" && first != "CONFIG" && first != "CLUSTER" && !scripts[name] && !slices.Contains(plain, name) {
			t.Errorf("nothing calls %s", name)
		}
	}
}

func TestRulesNameTheKeysOfTheAppOnly(t *testing.T) {
	for _, layout := range []string{keys.Standalone, keys.Cluster} {
		c, err := Open(redisconn.Options{URL: "redis://127.0.0.1:1", Keys: keys.Keys{App: "shop", Layout: layout}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, role := range keys.Roles() {
			for _, rule := range c.Rule(role) {
				if !regexp.MustCompile(`^(\+@transaction|\+[a-z]+(\|[a-z]+)?|(%R)?~__[a-z]+:(shop|\{shop)\}?(\.\*)?)$`).MatchString(rule) {
					t.Errorf("%s: rule %q", role, rule)
				}
			}
		}
	}
}

func TestCheckRights(t *testing.T) {
	e := realEnv(t)
	all := e.Rule(keys.Work)
	without := func(rules ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(r string) bool { return slices.Contains(rules, r) })
	}
	tests := []struct {
		name  string
		rules []string
		want  string
	}{
		{"all", all, ""},
		{"without what is not indispensable", without("+info", "+client|id", "+client|unblock", "+client|kill"), ""},
		{"without XINFO", without("+xinfo|stream", "+xinfo|groups"), `user "u" lacks rights that a worker needs: XINFO STREAM, XINFO GROUPS; let an administrator say: ACL SETUSER u \+xinfo\|stream \+xinfo\|groups; see docs/`},
		{"without streams", append(without(), "-@stream"), `needs: XADD, XTRIM, .*XGROUP SETID; `},
		{"without XGROUP", without("+xgroup|create"), `ACL SETUSER u \+xgroup\|create; see docs/`},
		{"without XREADGROUP", without("+xreadgroup"), `ACL SETUSER u \+xreadgroup; see docs/`},
		{"without HSET and INCRBY", without("+hset", "+incrby"), `needs: HSET, INCRBY; .* \+hset \+incrby; see docs/`},
		{"without a kind of key", without("~__memb:example.*"), `needs: keys __memb:example\.\*; .*ACL SETUSER u ~__memb:example\.\*; see docs/`},
		{"without the rules", without("%R~__rules:example"), `ACL SETUSER u %R~__rules:example; see docs/`},
		{"another app's keys", append(without(), "resetkeys", "~__*:other.*"), `needs: keys __strm:example\.\*, `},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := []any{"ACL", "SETUSER", "u", "reset", "on", ">pw"}
			for _, rule := range tt.rules {
				args = append(args, rule)
			}
			e.must(e.raw.Do(e.ctx(), args...).Err())
			c := try(Open(redisconn.Options{URL: "redis://u:pw@" + e.addr, Keys: example})).must(t)
			defer c.Close()
			e.must(c.Check(e.ctx()))
			err := c.CheckRights(e.ctx(), keys.Work)
			if tt.want == "" {
				e.must(err)
			} else if err == nil || !regexp.MustCompile(tt.want).MatchString(err.Error()) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	if left := e.raw.Keys(e.ctx(), "*").Val(); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// The embedded server has no rights; a worker runs there all the same.
func TestTheEmbeddedServerHasAllRights(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		for _, role := range keys.Roles() {
			e.must(e.CheckRights(e.ctx(), role))
		}
		version := try(redisconn.Node{Redis: e.Retrying}.Version(e.ctx())).must(t)
		equal(t, "tells its version", version.Number != "", e.real)
	})
}

// A script that the server forgot and the user may not load is sent as text; nothing runs twice.
func TestScriptsWithoutTheRightToLoadThem(t *testing.T) {
	e := realEnv(t)
	e.user("plain", "-script")
	c := try(Open(redisconn.Options{URL: "redis://plain:pw@" + e.addr, Keys: example})).must(t)
	defer c.Close()
	for i := range 5 {
		e.must(e.raw.ScriptFlush(e.ctx()).Err())
		var all []Append
		for n := range 20 {
			all = append(all, Append{Log: example.Partition("orders", n), Records: records(i, 3)})
		}
		for _, a := range c.Append(e.ctx(), all) {
			e.must(a.Err)
		}
	}
	for n := range 20 {
		equal(t, "entries", e.raw.XLen(e.ctx(), example.Partition("orders", n)).Val(), 15)
	}
}
