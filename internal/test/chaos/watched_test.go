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

// watched is a master with two replicas, and three sentinels. One replica or both must confirm
// sends and ownerships, so no accepted event may be lost in a failover.
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

// synced are the arguments of servers that sync before they reply.
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

// failOver kills the master (-9), which comes back as a replica of another one.
func (o *watched) failOver(s *scene) {
	o.failing(s, "failover", history.Failover, func(master *redistest.Server) {
		master.Kill()
		o.set.WaitFailover(master)
		o.set.Restart(master)
	})
}

// kill kills the master (-9), which comes back so soon that sentinels may not have noticed: then it
// may work for a while beside the new one.
func (o *watched) kill(s *scene) {
	o.failing(s, "server-kill", history.Split, func(master *redistest.Server) {
		master.Kill()
		s.rest(time.Duration(s.rng.Int64N(int64(3 * time.Second / 2))))
		o.set.Restart(master)
	})
}

// stop sends SIGSTOP to the master, which still believes it is the master when it continues. It
// continues only when the others follow the new one: earlier, a replica that still follows it could
// confirm writes that are then lost; see docs/reliability.md.
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

// switchOver makes sentinels promote a replica while the master works, until they make it a
// replica. If one replica is enough to confirm, the other one meanwhile confirms writes that are
// lost with it.
func (o *watched) switchOver(s *scene) {
	o.failing(s, "switch", history.Split, func(master *redistest.Server) {
		awaitNil(o.t, "agreement to a failover", func(ctx context.Context) error {
			return o.ask.Do(ctx, "SENTINEL", "FAILOVER", redistest.MasterName).Err()
		})
		o.set.WaitFailover(master)
	})
}

// failing does something that may cause a failover, and waits until all is well.
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

// stopReplicas stops all replicas that confirm writes: nothing is accepted meanwhile, and no
// partition gets another owner.
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

// settle waits until a master has its replicas, and they are in sync.
func (o *watched) settle() { o.set.Settle() }
