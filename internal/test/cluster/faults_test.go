package cluster

import (
	"fmt"
	"testing"

	"github.com/runnel-go/runnel/internal/test/redistest"
)

func (r *rig) slotOfPartition(n int) int { return r.k.Slot(fmt.Sprintf("__strm:{shop.%d}.steps", n)) }

// Slots move to and fro under load. No command is repeated that may have been executed,
// so that not even one event comes twice, and none is lost or out of order.
func TestSlotsMove(t *testing.T) {
	r := newRig(t, 0)
	app, s := r.app(nil)
	r.run(app)
	x := r.send(s, 40)
	r.await("some are handled", func() bool { return len(r.handled(false)) == 40 })
	slots := []int{r.k.Slot("__rules:{shop}")}
	for n := range partitions {
		slots = append(slots, r.slotOfPartition(n))
	}
	for round := range 2 {
		for i, slot := range slots {
			to := r.k.Nodes()[(i+round)%3]
			if r.k.Owner(slot) == to {
				continue
			}
			m := r.k.Begin(slot, to)
			m.Some(3)
			m.Some(1)
			m.End()
		}
	}
	before := r.handled(true)["k7"]
	r.await("more are handled", func() bool { return r.handled(true)["k7"] > before+10 })
	r.all(x.end(), true)
}

// A replica takes over in agreement with its master: nothing is lost.
func TestFailoverInAgreement(t *testing.T) {
	r := newRig(t, 1)
	app, s := r.app(nil)
	r.run(app)
	x := r.send(s, 40)
	r.await("some are handled", func() bool { return len(r.handled(false)) == 40 })
	for _, master := range r.k.Nodes()[:3] {
		r.k.Failover(r.k.ReplicaOf(master))
	}
	before := r.handled(true)["k7"]
	r.await("more are handled", func() bool { return r.handled(true)["k7"] > before+10 })
	r.all(x.end(), true)
}

// A master dies, or stands still for so long that its replica takes over, and comes back
// then. What it had accepted and not replicated may be lost, and is counted; nothing
// else is, the order holds, and everything goes on by itself.
func TestMasterIsGone(t *testing.T) {
	for name, fault := range map[string]struct {
		hurt, heal func(master *redistest.Server)
	}{
		"kill -9": {
			func(master *redistest.Server) { master.Kill() },
			func(master *redistest.Server) { master.Restart() },
		},
		"SIGSTOP": {
			func(master *redistest.Server) { master.Freeze() },
			func(master *redistest.Server) { master.Thaw() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1)
			app, s := r.app(nil)
			r.run(app)
			second, _ := r.app(nil)
			r.run(second)
			x := r.send(s, 40)
			r.await("some are handled", func() bool { return len(r.handled(true)) == 40 })
			for _, key := range []string{"__rules:{shop}", "__strm:{shop.3}.steps"} {
				slot := r.k.Slot(key)
				master := r.k.Owner(slot)
				fault.hurt(master)
				r.await("a replica takes over", func() bool { return r.k.Owner(slot) != master })
				before, _ := r.judge(true)
				r.await("more are handled", func() bool {
					now, _ := r.judge(true)
					for key := range before {
						if now[key] < before[key]+10 {
							return false
						}
					}
					return true
				})
				fault.heal(master)
				r.k.Settle()
			}
			sent := x.end()
			r.await("all is handled", func() bool {
				got, _ := r.judge(true)
				return r.reached(sent, got)
			})
			_, lost := r.judge(true)
			t.Logf("%d events were lost with their masters; %d sends failed and were repeated", lost, len(x.errs))
		})
	}
}
