// A cluster whose slots move: rows, positions and the outbox of a partition lie in one slot, and move with it; its outputs go to others.

//go:build unix

package exact_test

import (
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
)

// Slots of partitions move key by key, while events come and workers are killed.
func TestSlotsThatMove(t *testing.T) {
	tier.Slow(t)
	t.Parallel()
	set := redistest.StartCluster(t, 3, 0)
	c := newCrew(t, set.Client(t), setup{URL: set.URL()}, keys.Cluster)
	c.reap(crewSize)
	wait := c.produce(c.setup.URL, events(12_000), 10, 15*time.Millisecond)
	nodes := set.Nodes()
	for n := range 16 {
		c.reap(crewSize)
		slot := set.Slot(c.keys.Partition(streams[0], n))
		from := set.Owner(slot)
		to := nodes[c.rng.IntN(len(nodes))]
		for to == from {
			to = nodes[c.rng.IntN(len(nodes))]
		}
		m := set.Begin(slot, to)
		for range 4 {
			c.rest(time.Duration(c.rng.Int64N(int64(lease / 4))))
			m.Some(1)
		}
		if n%3 == 0 {
			c.kill(c.pick())
		}
		m.End()
	}
	set.Settle()
	wait()
	c.finish(crewSize)
}
