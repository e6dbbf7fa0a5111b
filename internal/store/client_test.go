package store

import (
	"context"
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"

	"github.com/runnel-go/runnel/internal/test/servers"
)

var example = keys.Keys{App: "example", Layout: keys.Standalone}

func TestOpenRefusesWithoutThePassword(t *testing.T) {
	for _, raw := range []string{
		"redis://user:sec ret@host:6379", "redis://:sec/ret@host:1", "redis://:secret@host:port", "http://:secret@host",
		"redis://u:p/secret@host", "redis://:secret@host/0/1", "redis://host?password=secret", ":secret@host", "",
		"redis://:%zzsecret@host",
	} {
		c, err := Open(redisconn.Options{URL: raw, Keys: example})
		if err == nil {
			c.Close()
			t.Errorf("%s was accepted", raw)
			continue
		}
		if strings.Contains(err.Error(), "sec") || strings.Contains(err.Error(), "ret") {
			t.Errorf("%s: the error shows the password: %v", raw, err)
		}
		if strings.Contains(raw, "host") && !strings.Contains(err.Error(), "host") {
			t.Errorf("%s: the error does not name the URL: %v", raw, err)
		}
	}
}

func TestOpenRefusesOtherClients(t *testing.T) {
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer cluster.Close()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	defer ring.Close()
	for rdb, want := range map[redis.UniversalClient]string{cluster: "needs the key layout cluster", ring: "not supported"} {
		if _, err := Open(redisconn.Options{Redis: rdb, Keys: example}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%T: got %v", rdb, err)
		}
	}
}

func TestSharedClientIsLeftAlone(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		dials := make(chan string, 100)
		o := &redis.Options{Addr: "redis.example:6379", DB: 3, MaxRetries: -1, ReadTimeout: -1}
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials <- addr
			return (&net.Dialer{}).DialContext(ctx, "tcp", e.addr)
		}
		shared := redis.NewClient(o)
		defer shared.Close()
		c := try(Open(redisconn.Options{Redis: shared, Keys: example})).must(t)
		equal(t, "address", c.Addr(), "redis.example:6379")
		e.must(c.Check(e.ctx()))
		equal(t, "dialled", <-dials, "redis.example:6379")
		out := c.Append(e.ctx(), []Append{{Log: "log", Records: records(0, 1)}})
		e.must(out[0].Err)
		e.must(c.Close())
		e.must(c.Close())
		equal(t, "the shared client's database", shared.Exists(e.ctx(), "log").Val(), 1)
	})
}

func TestCheck(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.must(e.Check(e.ctx()))
		equal(t, "CanKill", e.CanKill(), true)
		equal(t, "CanUnblock", e.CanUnblock(), e.real)
	})
}

// user creates a user with the password pw and all rights but those that less takes away.
func (e *env) user(name string, less ...string) {
	e.t.Helper()
	args := []any{"ACL", "SETUSER", name, "on", ">pw", "~*", "+@all"}
	for _, rule := range less {
		args = append(args, rule)
	}
	e.must(e.raw.Do(e.ctx(), args...).Err())
}

func TestCheckSaysWhatIsMissing(t *testing.T) {
	secured := realEnv(t)
	secured.user("weak", "-client|kill", "-client|unblock")
	secured.user("scriptless", "-@scripting")
	secured.must(secured.raw.ConfigSet(t.Context(), "requirepass", "secret").Err())
	tests := []struct{ name, url, want string }{
		{"no server", "redis://127.0.0.1:1", "redis at 127.0.0.1:1: .*refused"},
		{"no password", "redis://" + secured.addr, "a password is required"},
		{"wrong password", "redis://:wrong@" + secured.addr, "wrong user name or password"},
		{"no scripts", "redis://scriptless:pw@" + secured.addr, "scripts are not available to user \"scriptless\": .*NOPERM.*ACL SETUSER scriptless \\+eval \\+evalsha"},
		{"weak", "redis://weak:pw@" + secured.addr, ""},
		{"fine", "redis://:secret@" + secured.addr, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Open(redisconn.Options{URL: tt.url, Keys: example})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			err = c.Check(t.Context())
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				equal(t, "CanKill and CanUnblock", []bool{c.CanKill(), c.CanUnblock()}, []bool{tt.name == "fine", tt.name == "fine"})
				return
			}
			if err == nil || !regexp.MustCompile(tt.want).MatchString(err.Error()) {
				t.Fatalf("got %v, want %s", err, tt.want)
			}
			if strings.Contains(err.Error(), ":wrong@") || strings.Contains(err.Error(), "pw@") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := NewExecutorID()
		if !regexp.MustCompile(`^[a-z2-7]{16}$`).MatchString(id) || len(id) != ExecutorIDLength || seen[id] {
			t.Fatalf("ID %q", id)
		}
		seen[id] = true
	}
	equal(t, "lock value", tenure(alice, 12).LockValue(), alice+":0000000000000012")
	equal(t, "group", GroupName("my-proc", alice), "my-proc@"+alice)
	c, err := Open(redisconn.Options{URL: "redis://127.0.0.1", Keys: example})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	equal(t, "place", c.Partition("a.b", "printer", 3), Partition{"a.b", "printer", 3,
		"__strm:example.a.b.3", "__lock:example.a.b.printer.3", "__own:example.a.b.printer.3",
		"__parked:example.a.b.printer.3", "__retry:example.a.b.printer.3", "__dead:example.a.b.printer.3", "__out:example.a.b.printer.3", "__due:example.a.b.3"})
}

func TestKillIsRefused(t *testing.T) {
	e := realEnv(t)
	e.user("weak", "-client|kill", "-client|unblock", "-client|id")
	c := try(Open(redisconn.Options{URL: "redis://weak:pw@" + e.addr, Keys: example})).must(t)
	defer c.Close()
	p := e.Partition("orders", "printer", 0)
	e.own(p, tenure(alice, 1))
	r := c.NewReader()
	defer r.Close()
	answered := make(chan error, 1)
	go func() {
		_, err := r.Read(e.ctx(), GroupName("printer", alice), "c", []string{p.Log}, 1, time30s)
		answered <- err
	}()
	if err := servers.Interrupted(t, r, answered); err == nil {
		t.Error("the read ended without an error")
	}
	if err := r.Kill(e.ctx()); err == nil || !strings.Contains(err.Error(), redisconn.ErrCannotKill.Error()) {
		t.Errorf("got %v", err)
	}
}
