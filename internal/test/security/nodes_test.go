package security

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// onCluster returns a scene on a cluster whose nodes all have the documented users.
func onCluster(t *testing.T) (*scene, *redistest.Cluster) {
	t.Helper()
	k := redistest.StartCluster(t, 3, 0, guardedArguments...)
	guard(t, "cluster", k.Nodes()...)
	return &scene{
		t: t, servers: k.Nodes(), admin: k.Client(t), journal: redistest.Start(t), layout: "cluster",
		url: func(user string) string { return strings.Replace(k.URL(), "://", "://"+user+":secret@", 1) },
	}, k
}

// The documented users suffice in a Redis Cluster too, while slots move.
func TestTheDocumentedRightsSufficeInACluster(t *testing.T) {
	t.Parallel()
	s, k := onCluster(t)
	s.everything(func() {
		var clients []*store.Client
		for role := range keys.Roles() {
			c, err := store.Open(redisconn.Options{URL: s.url("shop-" + role), Keys: s.keys()})
			s.must(err)
			defer c.Close()
			clients = append(clients, c)
		}
		asked := func() (nodes int) {
			for _, n := range k.Nodes() {
				nodes += strings.Count(n.Client(t).Info(t.Context(), "commandstats").Val(), "cmdstat_asking:")
				do(t, n.Client(t), "CONFIG RESETSTAT")
			}
			return nodes
		}
		for _, all := range [][]string{{s.keys().Partition("orders", 1), s.keys().Ownership("orders", "printer", 1)}, {s.keys().Meta("orders"), s.keys().Streams()}} {
			asked()
			moveSlot(t, k, clients, all...)
			if n := asked(); n != 1 {
				t.Errorf("%d nodes were asked for what moves to them, want 1", n)
			}
		}
		_, sender := s.app("shop-producer")
		s.must(sender.orders.Send(t.Context(), order{"moved1", 0}, order{"moved2", 0}, order{"moved3", 0}, order{"moved4", 0}))
		s.await("what was sent afterwards", func() bool { return s.all("orders", []string{"moved1", "moved2", "moved3", "moved4"}, 1) })
	})
}

func TestEachNodeOfAClusterNeedsTheRights(t *testing.T) {
	t.Parallel()
	s, k := onCluster(t)
	do(t, k.Nodes()[2].Client(t), "ACL SETUSER shop-worker -xack")
	app, _ := s.app("shop-worker")
	if err := app.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "lacks rights that a worker needs: XACK; ") {
		t.Errorf("got %v", err)
	}
	if code, out, _ := s.command("shop-worker", "doctor", "--role", "worker"); code == 0 || !strings.Contains(out, "XACK") {
		t.Errorf("doctor: code %d: %s", code, out)
	}
}

// onWatched returns a scene on a master that sentinels watch, all with the documented users.
func onWatched(t *testing.T, replicas int) (*scene, *redistest.Watched) {
	t.Helper()
	w := redistest.StartWatched(t, replicas, guardedArguments...)
	guard(t, "standalone", w.Servers()...)
	for _, sentinel := range w.Sentinels() {
		for _, line := range block(t, "sentinels") {
			do(t, sentinel.Client(t), line)
		}
	}
	return &scene{
		t: t, servers: w.Servers(), admin: w.Master().Client(t), journal: redistest.Start(t), layout: "standalone",
		url: func(user string) string {
			return "redis+sentinel://" + user + ":secret@" + strings.Join(w.SentinelAddrs(), ",") + "/" + redistest.MasterName +
				"?sentinel_username=shop-sentinel&sentinel_password=secret"
		},
	}, w
}

// With Sentinel the users suffice too, before and after a failover, including the one for the
// sentinels.
func TestTheDocumentedRightsSufficeWithSentinel(t *testing.T) {
	t.Parallel()
	s, w := onWatched(t, 1)
	s.everything(func() {
		old := w.Master()
		w.Replicas()[0].WaitSync(t, old) // replication is asynchronous
		s.nothingElseDenied()            // that is in the log which ends now
		old.Kill()
		s.admin = w.WaitFailover(old).Client(t)
		old.Restart() // which has forgotten the users
		guard(t, s.layout, old)
		w.WaitReplica(old)
		_, sender := s.app("shop-producer")
		s.await("a send", func() bool { return sender.orders.Send(t.Context(), order{"moved", 0}) == nil })
		s.await("what was sent afterwards", func() bool { return s.all("orders", []string{"moved"}, 1) })
	})
	if out := s.run(0, "shop-worker", "doctor", "--role", "worker"); !strings.Contains(out, "3 of 3 were asked") {
		t.Errorf("doctor: %s", out)
	}
	s.sentinelsDenied(w)
}

func (s *scene) sentinelsDenied(w *redistest.Watched) {
	s.t.Helper()
	for _, sentinel := range w.Sentinels() {
		denied, err := sentinel.Client(s.t).ACLLog(s.t.Context(), 100).Result()
		if s.must(err); len(denied) > 0 {
			s.t.Errorf("a sentinel denied %d requests, first %+v", len(denied), denied[0])
		}
	}
}

// A failover client needs more rights on the sentinels. Here replicas confirm.
func TestTheDocumentedRightsOfAFailoverClient(t *testing.T) {
	t.Parallel()
	s, w := onWatched(t, 2)
	failover := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: redistest.MasterName, SentinelAddrs: w.SentinelAddrs(), Username: "shop-worker", Password: "secret",
		SentinelUsername: "shop-failover", SentinelPassword: "secret", DisableIdentity: true,
	})
	defer failover.Close()
	f := begin(t, "shop", &runnel.Options{Redis: failover, Durability: runnel.Durability{MinReplicas: 1}})
	f.looker = runnel.New("shop", &runnel.Options{RedisURL: s.url("shop-watcher")})
	defer f.looker.Close()
	f.sent(0, 5)
	old := w.Master()
	for _, replica := range w.Replicas() {
		replica.WaitSync(t, old)
	}
	s.nothingElseDenied()
	old.Kill()
	s.servers = []*redistest.Server{w.WaitFailover(old)}
	f.sent(5, 10)
	s.nothingElseDenied()
	s.sentinelsDenied(w)
}
