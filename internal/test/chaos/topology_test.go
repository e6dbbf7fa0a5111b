//go:build unix

package chaos

import (
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A topology is a deployment of Redis, and the faults of its servers.
type topology interface {
	// link makes a connection to Redis for one process, which can be hurt alone.
	link() *link
	// client returns a client for the test itself, whose connection is never hurt. It lives as long
	// as the test.
	client() redis.UniversalClient
	// layout returns the naming of keys.
	layout() string
	// faults returns the faults of the servers. When a fault's function returns, it is over and the
	// servers answer.
	faults() []fault
	// some reports whether not all replicas must confirm sends; see history.Options.
	some() bool
}

// topologies are all there are, by name. Without a given duration, TestFaults plays the plain ones,
// and TestFaultsInDelivery the delivering ones.
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

func playOnEach(t *testing.T, delivers bool) {
	all := os.Getenv(durationVariable) != ""
	for _, topo := range topologies {
		if all || topo.plain && !delivers || topo.delivering && delivers {
			t.Run(topo.name, func(t *testing.T) { play(t, topo.start, delivers) })
		}
	}
}

type fault struct {
	name string
	// cards is how often it is in a deck; see deck.
	cards int
	do    func(s *scene)
}
