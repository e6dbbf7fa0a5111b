package store

import (
	"fmt"
	"testing"

	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A restarted server or a replica may have forgotten entries-read; nothing counts as lost for it.
func TestReadEntriesAreCountedAfterARestart(t *testing.T) {
	for _, name := range []string{"restart", "failover"} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
			replica := s.Replica(t)
			e := newEnv(t, s.Addr(), true)
			p := e.Partition("orders", "printer", 0)
			first := tenure(alice, 1)
			e.own(p, first)
			const events = 20
			for i := range events {
				id := e.add(p.Log, fmt.Sprint(i+1, "-1"))
				e.read(p, alice, 10)
				e.ack(p, alice, id)
				if i == 10 {
					got := e.refresh(LeaseRequest{Partition: p, Claim: first, Committed: id, Read: 11})
					equal(t, "state", got.Leases[0].State, Ours)
				}
			}
			replica.WaitSync(t, s)
			s.Kill()
			if name == "restart" {
				s.Restart()
			} else {
				replica.Promote()
				s = replica
			}
			after := newEnv(t, s.Addr(), true)
			if g := after.raw.XInfoGroups(after.ctx(), p.Log).Val()[0]; g.EntriesRead == events { // newer servers remember
				after.must(after.raw.Do(after.ctx(), "XGROUP", "SETID", p.Log, g.Name, g.LastDeliveredID, "ENTRIESREAD", 2).Err())
			}
			got := after.refresh(LeaseRequest{Partition: p, Claim: first, Committed: fmt.Sprint(events-5, "-1"), Read: events - 5, At: fmt.Sprint(events, "-1"), Count: events})
			equal(t, "lost", got.Leases[0].Lost, int64(0))
			group := after.raw.XInfoGroups(after.ctx(), p.Log).Val()[0]
			equal(t, "read, as Redis tells after a refresh", group.EntriesRead, int64(events))
			equal(t, "lag", group.Lag, int64(0))
			after.must(after.raw.Do(after.ctx(), "XGROUP", "SETID", p.Log, group.Name, fmt.Sprint(events, "-1"), "ENTRIESREAD", 2).Err()) // it forgets again
			pos := after.own(p, tenure(bob, 1))
			equal(t, "floor", pos.Committed, fmt.Sprint(events, "-1"))
			equal(t, "read", pos.Read, int64(events))
			equal(t, "lost", pos.Lost, int64(0))
		})
	}
}
