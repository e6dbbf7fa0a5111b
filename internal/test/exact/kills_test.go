// Workers that are killed all the time leave what each event counted once leaves.

//go:build unix

package exact_test

import (
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/tier"
)

const crewSize = 3

// Three workers, of which one is killed (-9) every 300 ms while events come, and some more. What they emit is stored in one step, or
// goes by way of outboxes, as in a cluster.
func TestKills(t *testing.T) {
	tier.Slow(t)
	t.Parallel()
	t.Run("in one step", func(t *testing.T) { kills(t, keys.Standalone) })
	t.Run("by outbox", func(t *testing.T) { kills(t, keys.Cluster) })
}

func kills(t *testing.T, layout string) {
	t.Parallel()
	n := events(30_000)
	c, _ := onServer(t, setup{Layout: layout})
	c.reap(crewSize)
	wait := c.produce(c.setup.URL, n, 200, 20*time.Millisecond)
	kills := 0
	for ; kills < 40+n/5000; kills++ {
		c.reap(crewSize)
		<-time.After(300 * time.Millisecond)
		c.kill(c.pick())
	}
	wait()
	t.Logf("%d kills, %d events", kills, c.sent)
	c.finish(crewSize)
}
