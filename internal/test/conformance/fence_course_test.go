package conformance

import (
	"context"
	"fmt"
	"os"

	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
)

// byPosition reports whether workers read by position, as RUNNEL_READS says; else they read by group. The
// tests assert the same promises in both modes. What differs is here: the names of requests, and what Redis
// knows of the events that are not done.
var byPosition = os.Getenv("RUNNEL_READS") == "position"

// readCommand is the command that reads partitions. By position, control streams are read with it, too.
func readCommand() string {
	if byPosition {
		return "XREAD"
	}
	return "XREADGROUP"
}

// onRead returns a rule for the n-th read of new entries of a partition.
func (r *rig) onRead(p *faultproxy.Proxy, n, partition int) *faultproxy.Rule {
	rule := p.On(readCommand(), n).Containing(line(r.partition(partition)))
	if !byPosition {
		rule.Containing(line(">"))
	}
	return rule
}

// onAck returns a rule for the n-th request that stores what is done of a partition: an XACK, or a call of
// commit.lua, as its number of keys and of arguments tells.
func (r *rig) onAck(p *faultproxy.Proxy, n, partition int) *faultproxy.Rule {
	if byPosition {
		log, own := r.partition(partition), r.own(partition)
		two := fmt.Sprintf("\r\n2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(log), log, len(own), own)
		return p.On("EVALSHA", n).Containing("*12\r\n$7\r\nevalsha\r\n", two)
	}
	return p.On("XACK", n).Containing(line(r.partition(partition)))
}

// undone returns how many events of a partition Redis would give to its next owner.
func (r *rig) undone(p int) int {
	ctx, log := context.Background(), r.partition(p)
	after := "+"
	for _, g := range r.groupsOf(p) {
		after = "(" + g.LastDeliveredID
		if pending := r.rdb.XPending(ctx, log, g.Name).Val(); pending != nil && pending.Count > 0 {
			after = pending.Lower
		}
	}
	return len(r.rdb.XRange(ctx, log, after, "+").Val())
}

// given reports whether the only worker holds n events of a partition that are not done, one of which its
// function has. By group Redis knows what it has delivered, by position only the worker does.
func (r *rig) given(m *member, p, n int) bool {
	if byPosition {
		stats := appview.Of(m.app).Stats().Processors[0]
		return stats.Running == 1 && stats.Waiting == n-1 && stats.Unacked == 0
	}
	groups := r.groupsOf(p)
	return len(groups) == 1 && groups[0].Pending == int64(n)
}

// followers returns how many connections wait for something else with the command that reads partitions: by
// position those of the workers to the control streams.
func (r *rig) followers() int {
	if byPosition {
		return len(r.members)
	}
	return 0
}
