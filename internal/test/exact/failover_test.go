// Servers that forget: a replica that was behind becomes the master. What it has is of one moment.

//go:build unix

package exact_test

import (
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
)

// Replicas that lack the last entries and commits become the master, one after the other. In the end rows, outputs and
// positions are those of the events that have survived.
func TestFailoversThatForget(t *testing.T) {
	tier.Slow(t)
	t.Parallel()
	srv := redistest.Start(t)
	front := faultproxy.Start(t, srv.Addr()) // of the producer
	c := newCrew(t, srv.Client(t), setup{URL: "redis://" + front.Addr()}, keys.Standalone)
	c.addr = srv.Addr()
	c.reap(crewSize)
	const rounds = 6
	wait := c.produce(c.setup.URL, events(12_000), 10, 15*time.Millisecond)
	for range rounds {
		link := faultproxy.Start(t, srv.Addr())
		replica := srv.ReplicaVia(t, link.Addr())
		for range 200 { // its connections have numbers of their own: workers end theirs by them
			one := replica.Client(t)
			if err := one.Ping(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			one.Close()
		}
		c.rest(300 * time.Millisecond)
		replica.WaitSync(t, srv)
		link.Pause()
		c.rest(100*time.Millisecond + time.Duration(c.rng.Int64N(int64(500*time.Millisecond)))) // that is forgotten
		if c.rng.IntN(2) == 0 {
			c.kill(c.pick())
		}
		proxies := []*faultproxy.Proxy{front}
		for _, p := range c.live {
			proxies = append(proxies, p.proxy)
		}
		for _, p := range proxies {
			p.Pause()
			p.SetTarget(replica.Addr())
		}
		srv.Kill()
		replica.Promote()
		for _, p := range proxies {
			p.CutAll()
			p.Resume()
		}
		srv, c.addr, c.rdb = replica, replica.Addr(), replica.Client(t)
		c.reap(crewSize)
		c.rest(time.Second)
	}
	wait()
	c.finish(crewSize)
}

// Sentinels promote replicas while masters are killed under load.
func TestSentinelFailovers(t *testing.T) {
	tier.Slow(t)
	t.Parallel()
	set := redistest.StartWatched(t, 2, "--appendonly", "yes", "--appendfsync", "always")
	c := newCrew(t, nil, setup{URL: set.URL()}, keys.Standalone)
	c.rdb = set.Master().Client(t)
	c.reap(crewSize)
	wait := c.produce(c.setup.URL, events(6_000), 10, 15*time.Millisecond)
	for range 2 {
		c.rest(time.Second)
		c.excuse()
		old := set.Master()
		old.Kill()
		c.rdb = set.WaitFailover(old).Client(t)
		c.reap(crewSize)
		set.Restart(old)
		set.Settle()
		c.kill(c.pick())
		c.reap(crewSize)
	}
	wait()
	c.finish(crewSize)
}

// A master of a cluster dies while its replica is behind, which takes its place: it forgets commits, what was emitted by them and
// what had come. What counts was confirmed by replicas before the next step, so what is left is exact.
func TestClusterFailoversThatForget(t *testing.T) {
	tier.Slow(t)
	t.Parallel()
	set := redistest.StartCluster(t, 3, 1)
	c := newCrew(t, set.Client(t), setup{URL: set.URL(), Safe: true}, keys.Cluster)
	c.reap(crewSize)
	wait := c.produce(c.setup.URL, events(8_000), 10, 25*time.Millisecond)
	for range 4 {
		c.rest(time.Second)
		slot := set.Slot(c.keys.Partition(streams[c.rng.IntN(3)], c.rng.IntN(5)))
		master := set.Owner(slot)
		replica := set.ReplicaOf(master)
		replica.WaitSync(t, master)
		replica.Freeze()
		c.rest(100*time.Millisecond + time.Duration(c.rng.Int64N(int64(400*time.Millisecond)))) // that is forgotten
		c.excuse()
		master.Kill()
		replica.Thaw()
		set.WaitFailover(slot, master)
		c.reap(crewSize)
		c.rest(time.Second)
		master.Restart()
		set.Settle()
		c.kill(c.pick())
		c.reap(crewSize)
	}
	wait()
	c.finish(crewSize)
}
