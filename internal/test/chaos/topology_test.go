//go:build unix

package chaos

import (
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A topology is Redis as it is deployed, and what can be done to its servers.
type topology interface {
	// link makes a way to Redis for one process, which can be hurt by itself.
	link() *link
	// client returns a client of the driver, whose way is never hurt. It lives as
	// long as the test.
	client() redis.UniversalClient
	// layout is how keys are named.
	layout() string
	// faults are what can be done to the servers. One is over, and the servers
	// answer, when its function returns.
	faults() []fault
	// some says that not all replicas have to confirm what is sent; see history.Options.
	some() bool
}

// topologies are all there are, by name. Where no duration is asked for, TestFaults
// plays those that are plain, and TestFaultsInDelivery those that are delivering.
var topologies = []struct {
	name              string
	start             func(t *testing.T) topology
	plain, delivering bool
}{
	{"standalone", startStandalone, true, true},
	{"sentinel", func(t *testing.T) topology { return startWatched(t, 1) }, false, true},
	{"sentinel-all", func(t *testing.T) topology { return startWatched(t, replicasOfMaster) }, false, false},
	{"cluster", startClustered, false, true},
}

// playOnEach plays on each topology.
func playOnEach(t *testing.T, delivers bool) {
	all := os.Getenv(durationVariable) != ""
	for _, topo := range topologies {
		if all || topo.plain && !delivers || topo.delivering && delivers {
			t.Run(topo.name, func(t *testing.T) { play(t, topo.start, delivers) })
		}
	}
}

// A fault is something that can be done.
type fault struct {
	name string
	// cards says how often it is in a deck; see deck.
	cards int
	do    func(s *scene)
}
