package security

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// arguments returns those of TLS-only servers with a certificate of a.
func (a *authority) arguments(mutual bool) []string {
	cert, key := a.issue("server")
	return redistest.TLS(a.file, cert, key, mutual)
}

// config returns the TLS settings of clients with their own certificate.
func (a *authority) config() *tls.Config {
	a.t.Helper()
	cert, err := tls.LoadX509KeyPair(a.issue("client"))
	a.must(err)
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}}
}

// mutual returns the options for servers that require a certificate.
func (a *authority) mutual(url string) *runnel.Options {
	cert, key := a.issue("client")
	return &runnel.Options{RedisURL: url, RedisCA: a.file, RedisCert: cert, RedisKey: key}
}

// With TLS-only sentinels and servers that require certificates, events are sent, processed and
// acked, also after the master was killed.
func TestSentinelByTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	w := redistest.StartWatched(t, 1, a.arguments(true)...)
	if !strings.HasPrefix(w.URL(), "rediss+sentinel://") {
		t.Fatal(w.URL())
	}
	failover := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: redistest.MasterName, SentinelAddrs: w.SentinelAddrs(), TLSConfig: a.config()})
	defer failover.Close()
	flows := map[string]*flow{
		"url":    begin(t, "url", a.mutual(w.URL())),
		"client": begin(t, "client", &runnel.Options{Redis: failover}),
	}
	for _, f := range flows {
		f.sent(0, 5)
	}
	old := w.Master()
	w.Replicas()[0].WaitSync(t, old) // replication is asynchronous
	old.Kill()
	w.WaitFailover(old)
	for _, f := range flows {
		f.sent(5, 10)
	}
	old.Restart()
	w.WaitReplica(old)
}

// The same in a cluster, while a slot moves: keys are found on either node during the move, and all
// on the new one after it.
func TestClusterByTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	k := redistest.StartCluster(t, 3, 0, a.arguments(true)...)
	if !strings.HasPrefix(k.URL(), "rediss+cluster://") {
		t.Fatal(k.URL())
	}
	o := &redis.ClusterOptions{TLSConfig: a.config()}
	for _, n := range k.Nodes() {
		o.Addrs = append(o.Addrs, n.Addr())
	}
	shared := redis.NewClusterClient(o)
	defer shared.Close()
	flows := map[string]*flow{
		"url":    begin(t, "url", a.mutual(k.URL())),
		"client": begin(t, "client", &runnel.Options{Redis: shared}),
	}
	for name, f := range flows {
		f.sent(0, 5)
		names := keys.Keys{App: name, Layout: keys.Cluster}
		options := redisconn.Options{Redis: shared, Keys: names}
		if name == "url" {
			m := a.mutual(k.URL())
			options = redisconn.Options{URL: m.RedisURL, TLS: redisconn.TLSFiles{CA: m.RedisCA, Cert: m.RedisCert, Key: m.RedisKey}, Keys: names}
		}
		c, err := store.Open(options)
		a.must(err)
		defer c.Close()
		sending := make(chan error, 1)
		go func() { sending <- f.send(5, 10) }()
		moveSlot(t, k, []*store.Client{c}, names.Partition("orders", 1), names.Ownership("orders", "printer", 1))
		a.must(<-sending)
		f.await(10)
	}
}

// moveSlot moves the slot of some keys to another node, and checks on the way that clients find all
// of them.
func moveSlot(t *testing.T, k *redistest.Cluster, clients []*store.Client, keys ...string) {
	t.Helper()
	slot := k.Slot(keys[0])
	to := k.Nodes()[0]
	if k.Owner(slot) == to {
		to = k.Nodes()[1]
	}
	move := k.Begin(slot, to)
	for left := 1; left > 0; left = move.Some(1) {
		for _, c := range clients {
			for _, key := range keys {
				if n, err := c.Redis().Exists(t.Context(), key).Result(); n != 1 || err != nil {
					t.Errorf("%s on its way: %d, %v", key, n, err)
				}
			}
		}
	}
	move.End()
}

// A rejected client gets the same reason from sentinels and nodes as from one server.
func TestTLSErrorsOfSentinelAndCluster(t *testing.T) {
	t.Parallel()
	a, stranger := newAuthority(t), newAuthority(t)
	cert, key := a.issue("client")
	otherCert, otherKey := stranger.issue("client")
	const refused, unknown = "RUNNEL_REDIS_CERT and RUNNEL_REDIS_KEY name its files", "server certificate not accepted: "
	for name, url := range map[string]func(mutual bool) string{
		"sentinel": func(mutual bool) string { return redistest.StartWatched(t, 0, a.arguments(mutual)...).URL() },
		"cluster":  func(mutual bool) string { return redistest.StartCluster(t, 3, 0, a.arguments(mutual)...).URL() },
	} {
		open, mutual := url(false), url(true)
		for _, tt := range []struct {
			name string
			o    runnel.Options
			want string // in the error, "" for none
		}{
			{"with its authority", runnel.Options{RedisURL: open, RedisCA: a.file}, ""},
			{"perhaps unchecked", runnel.Options{RedisURL: open + "?skip_verify=maybe"}, unknown},
			{"unchecked without TLS", runnel.Options{RedisURL: strings.Replace(open, "rediss", "redis", 1) + "?skip_verify=true"}, "unexpected option: skip_verify"},
			{"unchecked by choice", runnel.Options{RedisURL: open + "?skip_verify=true"}, ""},
			{"with the system's authorities", runnel.Options{RedisURL: open}, unknown},
			{"with a wrong authority", runnel.Options{RedisURL: open, RedisCA: stranger.file}, unknown},
			{"under a wrong name", runnel.Options{RedisURL: strings.ReplaceAll(open, "127.0.0.1", "localhost"), RedisCA: a.file}, unknown},
			{"with one right name", runnel.Options{RedisURL: strings.Replace(open, "127.0.0.1", "localhost", 1), RedisCA: a.file}, ""},
			{"without TLS", runnel.Options{RedisURL: strings.Replace(open, "rediss", "redis", 1)}, "if it speaks TLS, the URL begins with rediss"},
			{"without our certificate", runnel.Options{RedisURL: mutual, RedisCA: a.file}, refused},
			{"with a stranger's certificate", runnel.Options{RedisURL: mutual, RedisCA: a.file, RedisCert: otherCert, RedisKey: otherKey}, refused},
			{"with both certificates", runnel.Options{RedisURL: mutual, RedisCA: a.file, RedisCert: cert, RedisKey: key}, ""},
			{"an authority for a plain URL", runnel.Options{RedisURL: strings.Replace(open, "rediss", "redis", 1), RedisCA: a.file}, "are for a URL that begins with rediss"},
		} {
			t.Run(fmt.Sprintf("%s, %s", name, tt.name), func(t *testing.T) {
				t.Parallel()
				switch err := works(t, &tt.o); {
				case tt.want == "" && err != nil:
					t.Error(err)
				case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
					t.Errorf("got %v, want %s", err, tt.want)
				}
			})
		}
	}
}

// An app with its own client gets it, too.
func TestTLSErrorsOfGivenClients(t *testing.T) {
	t.Parallel()
	a, stranger := newAuthority(t), newAuthority(t)
	w := redistest.StartWatched(t, 0, a.arguments(true)...)
	k := redistest.StartCluster(t, 3, 0, a.arguments(true)...)
	failover := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: redistest.MasterName, SentinelAddrs: w.SentinelAddrs(), TLSConfig: stranger.config()})
	defer failover.Close()
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{k.Nodes()[0].Addr()}, TLSConfig: stranger.config()})
	defer cluster.Close()
	for _, o := range []*runnel.Options{{Redis: failover}, {Redis: cluster}} {
		if err := works(t, o); err == nil || !strings.Contains(err.Error(), "server certificate not accepted: x509: ") {
			t.Errorf("%T: got %v", o.Redis, err)
		}
	}
}
