package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/tier"
)

// manyProcessors are streams with many processors, each of which owns all partitions.
var manyProcessors = []struct{ partitions, processors, size int }{
	{128, 50, 100},
	{16, 100, 100 << 10},
}

// process appends entries of size bytes to each partition, gives each processor the first of them,
// and returns the partitions in the order of the processors.
func (e *env) process(partitions, processors, entries, size, given int) (all []Partition) {
	e.t.Helper()
	var names []string
	for k := range processors {
		names = append(names, fmt.Sprintf("p%03d", k))
		for i := range partitions {
			p := e.Partition("orders", names[k], i)
			if k == 0 {
				e.grow(p.Log, entries, size)
			}
			all = append(all, p)
		}
	}
	try(e.EnsureMeta(e.ctx(), "orders", Meta{Partitions: partitions, MaxLen: 1000, Processors: names})).must(e.t)
	for some := range partitions {
		p := e.raw.Pipeline()
		for k := range processors {
			place := all[k*partitions+some]
			p.Do(e.ctx(), "XGROUP", "CREATE", place.Log, GroupName(place.Processor, alice), fmt.Sprint(given, "-1"), "ENTRIESREAD", given)
			p.Set(e.ctx(), place.Lock, tenure(alice, 1).LockValue(), time.Hour)
			p.HSet(e.ctx(), place.Own, "epoch", 1, "tenure", tenure(alice, 1).LockValue(), "floor", "0-0")
		}
		try(p.Exec(e.ctx())).must(e.t)
	}
	return all
}

// A worker that counts unread removals looks only at its own group, among those of many processors.
func TestRefreshesDoNotHoldTheServer(t *testing.T) {
	for _, tt := range manyProcessors {
		t.Run(fmt.Sprintf("%d partitions of %d processors, %d bytes", tt.partitions, tt.processors, tt.size), func(t *testing.T) {
			e, m := meteredEnv(t)
			all := e.process(tt.partitions, tt.processors, 3, tt.size, 3)
			t.Log(m.Hold(longestScript, longestRow, func() {}, func() {
				var rs []LeaseRequest
				for _, p := range all[len(all)-tt.partitions:] {
					rs = append(rs, LeaseRequest{Partition: p, Claim: tenure(alice, 1), Committed: "3-1", Read: 3, At: "3-1", Count: 3})
				}
				got := e.refresh(rs...)
				for _, r := range got.Leases {
					equal(t, "state, lost, counted", fmt.Sprint(r.State, r.Lost, r.Counted), fmt.Sprint(Ours, 0, true))
				}
			}))
		})
	}
}

// Large entries may be undelivered, or removed unread.
func TestRefreshesOfLargeEntriesDoNotHoldTheServer(t *testing.T) {
	tier.Sequential(t)
	const size = 256 << 10
	for _, tt := range []struct {
		name    string
		since   []any // done to each partition once the first of three entries was given
		at      string
		counted bool
		lost    int64
	}{
		{"more is on its way", nil, "1-1", false, 0},
		{"all that was left was given", []any{"XDEL", "2-1"}, "3-1", true, 1},
		{"nothing is left", []any{"XTRIM", "MAXLEN", 0}, "1-1", true, 2},
		{"the newest are deleted", []any{"XDEL", "2-1", "3-1"}, "1-1", false, 0}, // not counted until another one is given
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, m := meteredEnv(t)
			all, read := e.process(128, 1, 3, size, 1), int64(1)
			for _, p := range all {
				if tt.since != nil {
					e.must(e.raw.Do(e.ctx(), append([]any{tt.since[0], p.Log}, tt.since[1:]...)...).Err())
				}
				if tt.at == "3-1" {
					read = 2
					e.must(e.raw.Do(e.ctx(), "XGROUP", "SETID", p.Log, GroupName(p.Processor, alice), "3-1", "ENTRIESREAD", 2).Err())
				}
			}
			var rs []LeaseRequest
			for _, p := range all {
				rs = append(rs, LeaseRequest{Partition: p, Claim: tenure(alice, 1), Committed: "0-0", Read: 0, At: tt.at, Count: read})
			}
			t.Log(m.Hold(longestScript, longestRow, func() {}, func() {
				got := e.refresh(rs...)
				for _, r := range got.Leases {
					equal(t, "state, lost, counted", fmt.Sprint(r.State, r.Lost, r.Counted), fmt.Sprint(Ours, tt.lost, tt.counted))
				}
			}))
		})
	}
}
