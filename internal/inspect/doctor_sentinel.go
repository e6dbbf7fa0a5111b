package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/runnel-go/runnel/internal/redisconn"
)

// leastSentinels is the smallest number that can still agree without one of them.
const leastSentinels = 3

// sentinels checks whether the sentinels would notice the loss of the master.
func (d *doctor) sentinels(ctx context.Context) {
	all := d.c.Sentinels(ctx)
	if len(all) == 0 {
		return
	}
	var silent, masters []string
	known, best := 0, redisconn.Sentinel{}
	for _, s := range all {
		if s.Err != nil {
			silent = append(silent, fmt.Sprintf("%s (%v)", s.Addr, s.Err))
			continue
		}
		if !slices.Contains(masters, s.Master) {
			masters = append(masters, s.Master)
		}
		known, best = max(known, s.Known), s
	}
	switch {
	case len(masters) == 0:
		d.say("sentinels", LevelProblem, "start them, or correct the URL: after the next broken connection no client finds the master", "none answers: %s", strings.Join(silent, ", "))
	case len(masters) > 1:
		d.say("sentinels", LevelWarning, "look at SENTINEL CKQUORUM; during a failover this is over soon", "they do not agree on the master: %s", strings.Join(masters, ", "))
	case len(silent) > 0:
		d.say("sentinels", LevelWarning, "start them, or correct the URL", "no answer: %s", strings.Join(silent, ", "))
	case known < leastSentinels:
		d.say("sentinels", LevelWarning, "run three at least, on machines of their own: fewer cannot agree on a failover when one is gone", "%d, and quorum %d", known, best.Quorum)
	default:
		d.say("sentinels", LevelOK, "", "%d of %d were asked: the master is %s, with %d replicas", len(all), known, masters[0], best.Replicas)
	}
}
