//go:build unix

package chaos

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// watched is a master with two replicas, and three sentinels. One replica or both have
// to confirm what is sent, and who owns what: so nothing that was accepted may be lost
// when one of them takes the master's place.
type watched struct {
	t        *testing.T
	set      *redistest.Watched
	rdb      *redis.Client
	ask      *redis.Client // of a sentinel
	confirms int           // so many replicas
}

const replicasOfMaster = 2

func startWatched(t *testing.T, confirms int) topology {
	set := redistest.StartWatched(t, replicasOfMaster, synced...)
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: redistest.MasterName, SentinelAddrs: set.SentinelAddrs(), DisableIdentity: true,
	})
	t.Cleanup(func() { rdb.Close() })
	return &watched{t: t, set: set, rdb: rdb, ask: set.Sentinels()[0].Client(t), confirms: confirms}
}

// synced are the arguments of servers that sync before they answer.
var synced = []string{
	"--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-min-size", "16mb", "--enable-debug-command", "yes",
}

func (o *watched) link() *link {
	w := way{Sentinels: o.set.SentinelAddrs(), Replicas: o.confirms}
	return through(o.t, w, append(o.set.Servers(), o.set.Sentinels()...)...)
}

func (o *watched) client() redis.UniversalClient { return o.rdb }

func (o *watched) layout() string { return keys.Standalone }

func (o *watched) some() bool { return o.confirms < replicasOfMaster }

func (o *watched) faults() []fault {
	return []fault{
		{"failover", 1, o.failOver},
		{"server-kill", 1, o.kill},
		{"server-stop", 1, o.stop},
		{"switch", 1, o.switchOver},
		{"replica-kill", 1, o.killReplica},
		{"replicas-stop", 1, o.stopReplicas},
		{"sentinel-stop", 1, o.stopSentinel},
		{"scripts", 1, func(s *scene) { s.forgetScripts(o.rdb) }},
		{"flush", 1, func(s *scene) { s.flush(o.rdb, everywhere, replicasOfMaster) }},
	}
}

// failOver is kill -9 of the master, which comes back as a replica of another one.
func (o *watched) failOver(s *scene) {
	o.failing(s, "failover", history.Failover, func(master *redistest.Server) {
		master.Kill()
		o.set.WaitFailover(master)
		o.set.Restart(master)
	})
}

// kill is kill -9 of the master, which comes back so soon that sentinels may, and may
// not, have noticed: then it goes on for a while beside the new one.
func (o *watched) kill(s *scene) {
	o.failing(s, "server-kill", history.Split, func(master *redistest.Server) {
		master.Kill()
		s.rest(time.Duration(s.rng.Int64N(int64(3 * time.Second / 2))))
		o.set.Restart(master)
	})
}

// stop is SIGSTOP of the master, which still takes itself for it when it goes on.
// That it does only when the others follow the new one: before, it could find a
// replica that still follows it, and confirms what is lost; see docs/reliability.md.
func (o *watched) stop(s *scene) {
	o.failing(s, "server-stop", history.Failover, func(master *redistest.Server) {
		master.Freeze()
		next := o.set.WaitFailover(master)
		for _, other := range o.set.Servers() {
			if other != master && other != next {
				o.set.WaitReplica(other)
			}
		}
		master.Thaw()
	})
}

// switchOver has sentinels promote a replica while the master works, and goes on to,
// until they make a replica of it. Where one replica is enough to confirm,
// the other one does, meanwhile, what is lost with it.
func (o *watched) switchOver(s *scene) {
	o.failing(s, "switch", history.Split, func(master *redistest.Server) {
		awaitNil(o.t, "agreement to a failover", func(ctx context.Context) error {
			return o.ask.Do(ctx, "SENTINEL", "FAILOVER", redistest.MasterName).Err()
		})
		o.set.WaitFailover(master)
	})
}

// failing does something that may end in another master, and waits until all is well.
func (o *watched) failing(s *scene, name, kind string, do func(master *redistest.Server)) {
	master := o.master()
	s.failover(name, kind, func() (changed bool) {
		do(master)
		o.settle()
		return o.master() != master
	})
}

func (o *watched) killReplica(s *scene) {
	replica := o.replicas()[s.rng.IntN(replicasOfMaster)]
	kind := history.Slow
	if o.confirms == replicasOfMaster {
		kind = history.Down // no replica can take over
	}
	s.note("replica-kill", kind, "")
	replica.Kill()
	s.rest(time.Duration(s.rng.Int64N(int64(lockExpiry))))
	o.set.Restart(replica)
	o.settle()
}

// stopReplicas leaves no replica that confirms writes: nothing is accepted meanwhile, and
// no partition gets another owner.
func (o *watched) stopReplicas(s *scene) {
	s.note("replicas-stop", history.Down, "")
	replicas := o.replicas()
	for _, r := range replicas {
		r.Freeze()
	}
	s.rest(lockExpiry + time.Duration(s.rng.Int64N(int64(lockExpiry))))
	for _, r := range replicas {
		r.Thaw()
	}
	o.settle()
}

func (o *watched) stopSentinel(s *scene) {
	all := o.set.Sentinels()
	one := all[s.rng.IntN(len(all))]
	s.note("sentinel-stop", history.Slow, "")
	one.Freeze()
	s.rest(2 * lockExpiry)
	one.Thaw()
}

func (o *watched) master() (master *redistest.Server) {
	awaitNil(o.t, "master", func(context.Context) error {
		if master = o.set.Master(); master == nil {
			return fmt.Errorf("no two sentinels agree")
		}
		return nil
	})
	return master
}

func (o *watched) replicas() []*redistest.Server {
	o.master()
	return o.set.Replicas()
}

// settle waits until a master has its replicas, and they have what it has.
func (o *watched) settle() { o.set.Settle() }
