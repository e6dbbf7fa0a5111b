package redisconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/test/redistest"
)

func TestSentinelURL(t *testing.T) {
	for _, tt := range []struct {
		url, addrs, name string
		db               int
		user, password   string
	}{
		{"redis+sentinel://one:1,two,[::1]:3/shop", "one:1 two:26379 [::1]:3", "shop", 0, "", ""},
		{"redis+sentinel://u:p%40@one/a%2Fb/7?read_timeout=3s&sentinel_password=x", "one:26379", "a/b", 7, "u", "p@"},
		{"rediss+sentinel://:p@one:1/shop/?sentinel_username=a&sentinel_password=b", "one:1", "shop", 0, "", "p"},
	} {
		o, s, err := baseOptions(Options{URL: tt.url})
		if err != nil {
			t.Errorf("%s: %v", tt.url, err)
			continue
		}
		equal(t, tt.url, fmt.Sprint(strings.Join(s.addrs, " "), s.name, o.DB, o.Username, o.Password), fmt.Sprint(tt.addrs, tt.name, tt.db, tt.user, tt.password))
		equal(t, tt.url+": TLS", o.TLSConfig != nil, strings.HasPrefix(tt.url, "rediss"))
		so := s.clients[0].Options()
		equal(t, tt.url+": TLS of a sentinel", so.TLSConfig != nil, o.TLSConfig != nil)
		equal(t, tt.url+": login of a sentinel", so.Password != "", strings.Contains(tt.url, "sentinel_password"))
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}
}

func TestSentinelURLIsRefusedWithoutThePassword(t *testing.T) {
	for _, raw := range []string{
		"redis+sentinel://host", "redis+sentinel:///shop", "redis+sentinel://host:x/shop", "redis+sentinel://host,/shop",
		"redis+sentinel://:sec/ret@host/shop", "redis+sentinel://:secret@host/shop/x", "redis+sentinel://:se?cret@host/shop",
		"redis+sentinel://host/shop?sentinel_password=sec%zzret", "redis+sentinel://host/shop?sentinel_password=secret&nothing=1",
		"redis+sentinel://:%zzsecret@host/shop", "redis+sentinel://host/shop?sentinel_password=x@secret&read_timeout=x", "redis+sentinel://host/%zz",
		"redis://:se?cret@host/0",
	} {
		c, err := Open(Options{URL: raw, Keys: example})
		if err == nil {
			c.Close()
			t.Errorf("%s was accepted", raw)
			continue
		}
		if strings.Contains(err.Error(), "sec") || strings.Contains(err.Error(), "ret@") || strings.Contains(err.Error(), "cret") {
			t.Errorf("%s: the error shows the password: %v", raw, err)
		}
	}
}

// watchedClients returns clients of a watched master: of a URL, and of a failover client.
func watchedClients(t *testing.T, w *redistest.Watched, password string) map[string]*Conn {
	t.Helper()
	failover := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: redistest.MasterName, SentinelAddrs: w.SentinelAddrs(), Password: password, DisableIdentity: true,
	})
	t.Cleanup(func() { failover.Close() })
	clients := map[string]*Conn{}
	for name, o := range map[string]Options{"URL": {URL: w.URL(), Keys: example}, "failover client": {Redis: failover, Keys: example}} {
		c, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := errors.Join(c.Close(), c.Close()); err != nil {
				t.Error(err)
			}
		})
		if err := c.Check(t.Context()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		clients[name] = c
	}
	return clients
}

// sendOne appends an entry, once.
func (c *Conn) sendOne(ctx context.Context, log string) error {
	return c.NoRetry.XAdd(ctx, &redis.XAddArgs{Stream: log, Values: []any{"a", "b"}}).Err()
}

// Clients find the new master and send nothing to the old one, even when it goes on as before.
func TestClientsFollowTheMaster(t *testing.T) {
	t.Parallel()
	w := redistest.StartWatched(t, 1, "--requirepass", "secret")
	old := w.Master()
	clients := watchedClients(t, w, "secret")
	for name, c := range clients {
		if err := c.sendOne(t.Context(), "log"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	w.Replicas()[0].WaitSync(t, old) // replication is asynchronous
	old.Freeze()
	master := w.WaitFailover(old)
	for name, c := range clients {
		redistest.Eventually(t, name+" finds the new master", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return c.sendOne(ctx, "new") == nil
		})
		c.tracker.mu.Lock()
		at := c.tracker.at
		c.tracker.mu.Unlock()
		equal(t, name+": the master", at, master.Addr())
	}
	equal(t, "replicated before", master.Client(t).XLen(t.Context(), "log").Val(), 2)
	old.Thaw()
	for name, c := range clients {
		for range 50 { // through every connection that a pool may have kept
			if err := c.sendOne(t.Context(), "after"); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	equal(t, "after", master.Client(t).XLen(t.Context(), "after").Val(), 100)
	w.WaitReplica(old)
}

// A server that sentinels wrongly call the master gets no command.
func TestAReplicaIsNoMaster(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	replica := server.Replica(t)
	c, err := Open(Options{URL: server.URL(), Keys: example})
	if err != nil {
		t.Fatal(err)
	}
	c.tracker = newMasterTracker(&redis.Options{}, &sentinels{})
	defer c.Close()
	at := replica.Addr()
	c.tracker.find = func(ctx context.Context, network string) (net.Conn, string, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, at)
		return conn, at, err
	}
	c.tracker.where = func(context.Context) (string, error) { return at, nil }
	c.NoRetry.Close()
	c.NoRetry = redis.NewClient(c.options(-1))
	if err := Classify(c.sendOne(t.Context(), "log")); !errors.Is(err, errNotMaster) || errors.Is(err, ErrUnknownOutcome) || !Unavailable(err) {
		t.Errorf("got %v", err)
	}
	at = server.Addr()
	if err := c.sendOne(t.Context(), "log"); err != nil {
		t.Error(err)
	}
}

// Connections to an old master are closed, idle or busy, and go-redis notices, also with TLS.
func TestConnectionsToAnOldMasterAreClosed(t *testing.T) {
	t.Parallel()
	w := redistest.StartWatched(t, 0)
	t.Run("plain", func(t *testing.T) { closesConnections(t, watchedClients(t, w, "")["URL"]) })
	t.Run("opaque", func(t *testing.T) {
		c := watchedClients(t, w, "")["URL"]
		find := c.tracker.find
		c.tracker.find = func(ctx context.Context, network string) (net.Conn, string, error) {
			conn, addr, err := find(ctx, network)
			return struct{ net.Conn }{conn}, addr, err
		}
		c.tracker.moved("127.0.0.1:1")
		closesConnections(t, c)
	})
}

func closesConnections(t *testing.T, c *Conn) {
	t.Helper()
	if err := c.sendOne(t.Context(), "log"); err != nil {
		t.Fatal(err)
	}
	r := c.NewTail(TailOptions{})
	defer r.Close()
	blocked := make(chan error, 1)
	go func() {
		_, err := r.Read(t.Context(), []string{"log"}, []string{"9999999999999-0"}, time30s)
		blocked <- err
	}()
	redistest.Eventually(t, "the read blocks", func() bool {
		return strings.Contains(c.Redis().ClientList(t.Context()).Val(), " flags=b ")
	})
	c.tracker.moved("127.0.0.1:1")
	if err := <-blocked; !errors.Is(err, ErrUnknownOutcome) {
		t.Errorf("the read ends with %v", err)
	}
	for range 20 {
		if err := c.sendOne(t.Context(), "log"); err != nil {
			t.Fatalf("a closed connection was used: %v", err)
		}
	}
}

// CLIENT IDs count from 1 after each start: an old one, or the old master's, may be another
// client's.
func TestAKillHitsOnlyItsOwn(t *testing.T) {
	t.Parallel()
	e := realEnv(t)
	cn := e.raw.Conn()
	defer cn.Close()
	id, err := identityOf(e.ctx(), cn)
	e.must(err)
	other := connID{id.number, "127.0.0.1:1"}
	killed, err := e.raw.ClientKillByFilter(e.ctx(), other.kill()...).Result()
	e.must(err)
	equal(t, "killed", killed, 0)
	killed, err = e.raw.ClientKillByFilter(e.ctx(), id.kill()...).Result()
	e.must(err)
	equal(t, "killed", killed, 1)
}

func TestSentinelsThatDoNotKnow(t *testing.T) {
	t.Parallel()
	w := redistest.StartWatched(t, 0)
	addrs := w.SentinelAddrs()
	w.Sentinels()[0].Kill()
	for url, want := range map[string]string{
		"redis+sentinel://127.0.0.1:1/shop":                       "no sentinel knows where the master shop is: sentinel 127.0.0.1:1: .*refused",
		"redis+sentinel://" + addrs[1] + "/other":                 `knows no master named "other"`,
		"redis+sentinel://" + addrs[0] + "," + addrs[1] + "/shop": "",
	} {
		c, err := Open(Options{URL: url, Keys: example})
		if err != nil {
			t.Fatal(err)
		}
		err = c.Check(t.Context())
		if c.Close(); want == "" {
			if err != nil {
				t.Errorf("%s: %v", url, err)
			}
		} else if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) || IsReply(err) {
			t.Errorf("%s: got %v, want %s", url, err, want)
		}
	}
}
