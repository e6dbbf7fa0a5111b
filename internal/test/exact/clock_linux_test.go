// A server whose clock is set forward and back.

package exact_test

import (
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
)

// Set forward, the clock ends all locks while their owners work on; set back, it lets them live on, and gives entries the
// time of the last one. Each event counts once all the same, in rows that end, too.
func TestClockThatSteps(t *testing.T) {
	tier.Slow(t)
	t.Parallel()
	t.Run("in one step", func(t *testing.T) { clockSteps(t, keys.Standalone) })
	t.Run("by outbox", func(t *testing.T) { clockSteps(t, keys.Cluster) })
}

func clockSteps(t *testing.T, layout string) {
	t.Parallel()
	srv, clock := redistest.StartWithClock(t)
	c := newCrew(t, srv.Client(t), setup{URL: srv.URL(), Layout: layout, Clock: true}, layout)
	c.addr = srv.Addr()
	now, latest := time.Duration(0), time.Duration(0)
	step := fault{"clock", func(c *crew) {
		by := []time.Duration{lease, 3 * lease, time.Hour, 24 * time.Hour}[c.rng.IntN(4)]
		if c.rng.IntN(2) == 0 {
			by = -by
		}
		now += by
		latest = max(latest, now)
		clock.Set(now)
	}}
	c.reap(crewSize)
	wait := c.produce(c.setup.URL, events(12_000), 10, 15*time.Millisecond)
	c.hurt(append(workerFaults, step, step, step, step, step, step), 2)
	wait()
	clock.Set(latest) // else some rows end in a day
	c.finish(crewSize)
}
