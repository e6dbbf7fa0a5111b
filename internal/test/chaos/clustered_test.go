//go:build unix

package chaos

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// clustered is a Redis Cluster of three masters with one replica each, which must confirm sends and
// ownerships.
type clustered struct {
	t   *testing.T
	set *redistest.Cluster
	rdb *redis.ClusterClient

	nodes map[*redistest.Server]*redis.Client
}

const mastersOfCluster = 3

func startClustered(t *testing.T) topology {
	set := redistest.StartCluster(t, mastersOfCluster, 1, synced...)
	o := &clustered{t: t, set: set, rdb: set.Client(t), nodes: map[*redistest.Server]*redis.Client{}}
	for _, n := range set.Nodes() {
		o.nodes[n] = n.Client(t)
	}
	return o
}

func (o *clustered) link() *link {
	w := way{Replicas: 1}
	for _, n := range o.set.Nodes() {
		w.Nodes = append(w.Nodes, n.Addr())
	}
	return through(o.t, w, o.set.Nodes()...)
}

func (o *clustered) client() redis.UniversalClient { return o.rdb }

func (o *clustered) layout() string { return keys.Cluster }

func (o *clustered) some() bool { return false }

func (o *clustered) faults() []fault {
	return []fault{
		{"failover", 1, o.failOver},
		{"server-kill", 1, o.kill},
		{"server-stop", 1, o.stop},
		{"switch", 1, o.switchOver},
		{"replica-kill", 1, o.killReplica},
		{"replicas-stop", 1, o.stopReplica},
		{"slot", 3, o.moveSlot},
		{"scripts", 1, o.forgetScripts},
		{"flush", 1, o.flush},
	}
}

// failOver kills a master (-9), which comes back as a replica of its replica.
func (o *clustered) failOver(s *scene) {
	o.failing(s, "failover", func(master *redistest.Server, slot int) {
		master.Kill()
		o.set.WaitFailover(slot, master)
		master.Restart()
	})
}

// kill kills a master (-9), which comes back so soon that the others may or may not have noticed.
func (o *clustered) kill(s *scene) {
	o.failing(s, "server-kill", func(master *redistest.Server, _ int) {
		master.Kill()
		s.rest(time.Duration(s.rng.Int64N(int64(3 * time.Second))))
		master.Restart()
	})
}

// stop sends a master SIGSTOP until its replica has taken its place, and longer.
func (o *clustered) stop(s *scene) {
	o.failing(s, "server-stop", func(master *redistest.Server, slot int) {
		master.Freeze()
		o.set.WaitFailover(slot, master)
		s.rest(time.Duration(s.rng.Int64N(int64(lockExpiry))))
		master.Thaw()
	})
}

// switchOver is a planned failover, which loses nothing.
func (o *clustered) switchOver(s *scene) {
	s.note("switch", history.Down, "")
	o.set.Failover(o.set.ReplicaOf(o.set.Owner(o.slot(s))))
	o.set.Settle()
}

// failing hurts the master of a partition, which may cause a failover, and waits until all nodes
// are well.
func (o *clustered) failing(s *scene, name string, do func(master *redistest.Server, slot int)) {
	slot := o.slot(s)
	master := o.set.Owner(slot)
	s.failover(name, history.Failover, func() (changed bool) {
		do(master, slot)
		o.set.Settle()
		return o.set.Owner(slot) != master
	})
}

func (o *clustered) slot(s *scene) int {
	return o.set.Slot(s.keys.Partition("jobs", s.rng.IntN(partitions)))
}

func (o *clustered) killReplica(s *scene) {
	replica := o.set.ReplicaOf(o.set.Owner(o.slot(s)))
	s.note("replica-kill", history.Down, "") // no replica is left to confirm a takeover
	replica.Kill()
	s.rest(time.Duration(s.rng.Int64N(int64(lockExpiry))))
	replica.Restart()
	o.set.Settle()
}

// stopReplica stops the replicas that confirm writes of one of the nodes.
func (o *clustered) stopReplica(s *scene) {
	replica := o.set.ReplicaOf(o.set.Owner(o.slot(s)))
	s.note("replicas-stop", history.Down, "")
	replica.Freeze()
	s.rest(lockExpiry + time.Duration(s.rng.Int64N(int64(lockExpiry))))
	replica.Thaw()
	o.set.Settle()
}

// moveSlot moves a partition, or the keys shared by the app's workers, to another node, key by key.
func (o *clustered) moveSlot(s *scene) {
	slot := o.slot(s)
	if s.rng.IntN(4) == 0 {
		slot = o.set.Slot(s.keys.Rules())
	}
	from := o.set.Owner(slot)
	to := from
	for to == from {
		to = o.set.Owner(s.rng.IntN(1 << 14))
	}
	s.note("slot", history.Slow, "")
	m := o.set.Begin(slot, to)
	for range 3 {
		s.rest(time.Duration(s.rng.Int64N(int64(lockExpiry / 4))))
		m.Some(1)
	}
	s.rest(time.Duration(s.rng.Int64N(int64(lockExpiry / 4))))
	m.End()
	o.set.Settle()
}

func (o *clustered) forgetScripts(s *scene) {
	for _, master := range o.set.Masters() {
		s.forgetScripts(o.nodes[master])
	}
}

func (o *clustered) flush(s *scene) {
	master := o.set.Owner(o.slot(s))
	var where []int
	for n := range partitions {
		if o.set.Owner(o.set.Slot(s.keys.Partition("jobs", n))) == master {
			where = append(where, n)
		}
	}
	s.flush(o.nodes[master], where, 1)
	s.beats.forgotten()
	s.marker.torn.Store(true)
}
