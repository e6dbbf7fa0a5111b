package inspect

import (
	"context"
	"strings"

	"github.com/runnel-go/runnel/internal/redisconn"
)

// cluster checks the state of the cluster as a whole.
func (d *doctor) cluster(ctx context.Context, nodes []redisconn.Node) error {
	if !d.c.Clustered() {
		return nil
	}
	text, err := d.c.Redis().Do(ctx, "CLUSTER", "INFO").Text()
	if err != nil && !redisconn.IsReply(err) {
		return err
	}
	told := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			told[name] = value
		}
	}
	switch {
	case err != nil:
		d.say("cluster", LevelUnknown, "let the user run CLUSTER INFO", "%d masters; the cluster does not tell whether all slots are served", len(nodes))
	case told["cluster_state"] != "ok" || told["cluster_slots_ok"] != told["cluster_slots_assigned"]:
		d.say("cluster", LevelProblem, "look at redis-cli --cluster check: partitions whose slots no node serves stand still", "%d masters, %s of %s slots are served", len(nodes), told["cluster_slots_ok"], "16384")
	case len(nodes) < 3:
		d.say("cluster", LevelWarning, "have three masters at least: with fewer, too few are left to agree on a failover", "%d masters serve all slots", len(nodes))
	default:
		d.say("cluster", LevelOK, "", "%d masters serve all slots", len(nodes))
	}
	return nil
}
