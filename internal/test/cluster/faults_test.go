package cluster

import (
	"fmt"
	"testing"
)

func (r *rig) slotOfPartition(n int) int { return r.k.Slot(fmt.Sprintf("__strm:{shop.%d}.steps", n)) }

// Slots move to and fro under load. No command that may have been executed is repeated, so not even
// one event comes twice, and none is lost or out of order.
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
