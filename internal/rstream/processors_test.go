package rstream

import (
	"fmt"
	"testing"
	"time"
)

// manyProcessors are streams with many processors, each of which owns all partitions.
var manyProcessors = []struct{ partitions, processors, size int }{
	{128, 50, 100},
	{16, 100, 100 << 10},
}

// process appends so many entries of so many bytes to each partition, of which each processor was
// given the first ones. It returns the places in the order of the processors.
func (e *env) process(partitions, processors, entries, size, given int) (all []Place) {
	e.t.Helper()
	var names []string
	for k := range processors {
		names = append(names, fmt.Sprintf("p%03d", k))
		for i := range partitions {
			p := e.Place("orders", names[k], i)
			if k == 0 {
				e.grow(p.Log, entries, size)
			}
			all = append(all, p)
		}
	}
	_, err := e.EnsureMeta(e.ctx(), "orders", Meta{Partitions: partitions, Size: 1000, Processors: names})
	e.must(err)
	for some := range partitions {
		p := e.raw.Pipeline()
		for k := range processors {
			place := all[k*partitions+some]
			p.Do(e.ctx(), "XGROUP", "CREATE", place.Log, GroupName(place.Processor, alice), fmt.Sprint(given, "-1"), "ENTRIESREAD", given)
			p.Set(e.ctx(), place.Lock, tenure(alice, 1).LockValue(), time.Hour)
			p.HSet(e.ctx(), place.Own, "epoch", 1, "tenure", tenure(alice, 1).LockValue(), "floor", "0-0")
		}
		_, err := p.Exec(e.ctx())
		e.must(err)
	}
	return all
}

// A worker that counts what was removed unread looks at its own group, among those of many
// processors.
func TestRefreshesDoNotHoldTheServer(t *testing.T) {
	for _, tt := range manyProcessors {
		t.Run(fmt.Sprintf("%d partitions of %d processors, %d bytes", tt.partitions, tt.processors, tt.size), func(t *testing.T) {
			e, m := meteredEnv(t)
			all := e.process(tt.partitions, tt.processors, 3, tt.size, 3)
			t.Log(m.Hold(longestScript, longestRow, func() {}, func() {
				var rs []Renewal
				for _, p := range all[len(all)-tt.partitions:] {
					rs = append(rs, Renewal{Place: p, Tenure: tenure(alice, 1), Floor: "3-1", Read: 3, At: "3-1", Count: 3})
				}
				got, err := e.Refresh(e.ctx(), Pulse{Key: "beat", Expiry: time.Minute, Membership: "members"}, rs)
				e.must(err)
				for _, r := range got.Renewed {
					equal(t, "state, lost, counted", fmt.Sprint(r.State, r.Lost, r.Counted), fmt.Sprint(Ours, 0, true))
				}
			}))
		})
	}
}
