package redistest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	sentinels = 3
	quorum    = 2

	failoverTimeout = 90 * time.Second
)

// hurried are the periods of sentinels, in milliseconds: by default they check roles every ten
// seconds, and pause for half a minute after they waited for the processor for two seconds.
var hurried = map[string]int{
	"PING-PERIOD": 300, "ASK-PERIOD": 100, "INFO-PERIOD": 300, "PUBLISH-PERIOD": 500, "ELECTION-TIMEOUT": 2000,
	"TILT-TRIGGER": 20000, "TILT-PERIOD": 1000, "SLAVE-RECONF-TIMEOUT": 2000,
}

// MasterName is the name of the watched master.
const MasterName = "shop"

// A Watched is a master, its replicas, and three sentinels that watch them: they promote a replica when the master has
// not answered for a second, and make a replica of it when it is back. Its methods may be called concurrently.
type Watched struct {
	t         testing.TB
	servers   []*Server
	sentinels []*Server
}

// StartWatched starts a master with that many replicas and three sentinels, and returns when all know each other. args
// are those of the master and the replicas, as for Start; a "--requirepass" among them is also that of the replication.
func StartWatched(t testing.TB, replicas int, args ...string) *Watched {
	t.Helper()
	if password := argument(args, "--requirepass"); password != "" {
		args = append([]string{"--masterauth", password}, args...) // it may be a replica one day
	}
	w := &Watched{t: t}
	master := Start(t, args...)
	w.servers = append(w.servers, master)
	for range replicas {
		w.servers = append(w.servers, master.Replica(t, args...))
	}
	for range sentinels {
		w.sentinels = append(w.sentinels, startSentinel(t, master))
	}
	w.await("the sentinels to know each other and the replicas", func() bool {
		return !slices.ContainsFunc(w.sentinels, func(s *Server) bool {
			state := w.ask(s)
			return state["num-other-sentinels"] != fmt.Sprint(sentinels-1) || state["num-slaves"] != fmt.Sprint(replicas)
		})
	})
	return w
}

// startSentinel starts a sentinel with a file of its own, which it writes to.
func startSentinel(t testing.TB, master *Server) *Server {
	t.Helper()
	host, port, _ := strings.Cut(master.Addr(), ":")
	lines := []string{
		fmt.Sprintf("sentinel monitor %s %s %s %d", MasterName, host, port, quorum),
		"sentinel down-after-milliseconds " + MasterName + " 1000",
		"sentinel failover-timeout " + MasterName + " 3000",
	}
	if master.password != "" {
		lines = append(lines, "sentinel auth-pass "+MasterName+" "+master.password)
	}
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatalf("start a sentinel: %v", err)
	}
	s := launchNew(t, &Server{sentinel: file, args: tlsArguments(master.args)})
	settings := []any{"SENTINEL", "DEBUG"}
	for name, ms := range hurried {
		settings = append(settings, name, ms)
	}
	if err := s.Client(t).Do(context.Background(), settings...).Err(); err != nil {
		t.Fatalf("start a sentinel: SENTINEL DEBUG: %v", err)
	}
	return s
}

// Sentinels returns the sentinels, to be killed, frozen and asked as any server.
func (w *Watched) Sentinels() []*Server { return slices.Clone(w.sentinels) }

// Servers returns the master and its replicas, beginning with the first master.
func (w *Watched) Servers() []*Server { return slices.Clone(w.servers) }

func (w *Watched) SentinelAddrs() []string {
	addrs := make([]string, len(w.sentinels))
	for i, s := range w.sentinels {
		addrs[i] = s.Addr()
	}
	return addrs
}

// URL is where the master is, as a redis+sentinel:// URL, with its password if it has one.
func (w *Watched) URL() string {
	login := ""
	if password := w.servers[0].password; password != "" {
		login = ":" + password + "@"
	}
	return w.servers[0].scheme("+sentinel") + login + strings.Join(w.SentinelAddrs(), ",") + "/" + MasterName
}

// Master returns the server that most sentinels call the master, nil while no two agree.
func (w *Watched) Master() *Server {
	votes := map[string]int{}
	for _, s := range w.sentinels {
		state := w.ask(s)
		addr := state["ip"] + ":" + state["port"]
		if votes[addr]++; votes[addr] < quorum {
			continue
		}
		for _, server := range w.servers {
			if server.Addr() == addr {
				return server
			}
		}
	}
	return nil
}

// Replicas are the servers that the sentinels do not call the master, whatever their state.
func (w *Watched) Replicas() []*Server {
	master := w.Master()
	return slices.DeleteFunc(w.Servers(), func(s *Server) bool { return s == master })
}

// WaitFailover returns the new master once every sentinel calls another server than old the master, and that says it is.
func (w *Watched) WaitFailover(old *Server) (master *Server) {
	w.t.Helper()
	w.await("a failover from "+old.Addr(), func() bool {
		for _, s := range w.sentinels {
			if state := w.ask(s); state["port"] == "" || state["ip"]+":"+state["port"] == old.Addr() {
				return false
			}
		}
		master = w.Master()
		return master != nil && master.role() == "master"
	})
	return master
}

// WaitReplica returns once a server is a replica of the present master and has all of its data.
func (w *Watched) WaitReplica(s *Server) {
	w.t.Helper()
	w.await(s.Addr()+" to be a replica", func() bool {
		master := w.Master()
		return master != nil && master != s && s.follows(master)
	})
}

// Settle returns once all sentinels agree on the master and see nothing wrong with it, all other servers are its replicas,
// and each has what the master had at the call.
func (w *Watched) Settle() {
	w.t.Helper()
	var master *Server
	w.await("all to follow one master", func() bool {
		master = w.Master()
		return master != nil && master.role() == "master" && w.agree(master) &&
			!slices.ContainsFunc(w.servers, func(s *Server) bool { return s != master && !s.follows(master) })
	})
	for _, s := range w.servers {
		if s != master {
			s.WaitSync(w.t, master)
		}
	}
}

// agree reports whether all sentinels find that a server is the master, and well.
func (w *Watched) agree(master *Server) bool {
	for _, s := range w.sentinels {
		if state := w.ask(s); state["ip"]+":"+state["port"] != master.Addr() || state["flags"] != "master" {
			return false
		}
	}
	return true
}

// follows reports whether a server is a replica of another one, and connected to it.
func (s *Server) follows(master *Server) bool {
	info := replication(s)
	return info["role"] == "slave" && info["master_host"]+":"+info["master_port"] == master.Addr() && info["master_link_status"] == "up"
}

// Restart starts a server that was killed, as what it would be by its own file, which sentinels keep: the master, if
// most of them call it so, else a replica of that one.
func (w *Watched) Restart(s *Server) {
	w.t.Helper()
	var master *Server
	w.await("agreement on the master", func() bool {
		master = w.Master()
		return master != nil
	})
	of := ""
	if master != s {
		of = strings.Replace(master.Addr(), ":", " ", 1)
	}
	s.mu.Lock()
	s.replicaOf = of
	s.mu.Unlock()
	s.Restart()
}

// ask returns a sentinel's data on the master, empty without an answer.
func (w *Watched) ask(sentinel *Server) map[string]string {
	return ask(sentinel, func(ctx context.Context, c *redis.Client) (map[string]string, error) {
		cmd := redis.NewMapStringStringCmd(ctx, "SENTINEL", "MASTER", MasterName)
		_ = c.Process(ctx, cmd)
		return cmd.Result()
	})
}

// replication returns what a server tells of its replication, nothing without an answer.
func replication(s *Server) map[string]string {
	return ask(s, func(ctx context.Context, c *redis.Client) (map[string]map[string]string, error) {
		return c.InfoMap(ctx, "replication").Result()
	})["Replication"]
}

// role returns "master" or "slave", "" without an answer.
func (s *Server) role() string { return replication(s)["role"] }

// ask asks a server something. The answer is the zero value when the server is down or frozen.
func ask[T any](s *Server, question func(context.Context, *redis.Client) (T, error)) T {
	o := s.options()
	o.MaxRetries, o.DialerRetries, o.DialTimeout, o.ReadTimeout = -1, 1, time.Second, time.Second
	c := redis.NewClient(o)
	defer c.Close()
	answer, err := question(context.Background(), c)
	if err != nil {
		return *new(T)
	}
	return answer
}

func (w *Watched) await(what string, done func() bool) {
	w.t.Helper()
	if Within(failoverTimeout, done) {
		return
	}
	for _, s := range w.sentinels {
		w.t.Logf("log of sentinel %s:\n%s", s.Addr(), s.Log())
	}
	w.t.Fatalf("waited %v for %s", failoverTimeout, what)
}
