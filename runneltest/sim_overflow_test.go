package runneltest_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/runnel-go/runnel/internal/test/tier"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/runneltest"
)

// overflowing is how few entries a partition may have, so that it is often full.
const overflowing = 8

// TestSimOverflowSeeds is TestSimSeeds for partitions that are often full, with
// each of the policies and an eighth as many seeds: nothing that was accepted is
// lost, nothing that was refused is in, and what was dropped was counted.
func TestSimOverflowSeeds(t *testing.T) {
	tier.Sequential(t)
	tier.Slow(t)
	var refused, dropped atomic.Int64
	t.Run("storms", func(t *testing.T) {
		eachSeed(t, max(*seeds/8, 3), func(s *storm, n uint64) {
			s.pace = stormPause / 8
			s.stream.MaxLen = overflowing
			s.stream.Overflow = []runnel.Overflow{runnel.Reject, runnel.Block, runnel.DropOldest}[n%3]
			runneltest.Sim(s.t, s.build, func(c *runneltest.Cluster) {
				s.register(c)
				s.run(c)
				s.losses()
			})
			report := s.judge()
			for _, r := range s.log.Records() {
				if r.Kind == history.Refused {
					refused.Add(1)
				}
			}
			dropped.Add(int64(report.Dropped))
			if s.stream.Overflow != runnel.DropOldest && report.Dropped > 0 {
				s.t.Errorf("%d events were dropped under %v", report.Dropped, s.stream.Overflow)
			}
		})
	})
	t.Logf("%d were refused, %d dropped", refused.Load(), dropped.Load())
	if *seed == 0 && (refused.Load() == 0 || dropped.Load() == 0) {
		t.Error("no partition was full")
	}
}

// register lets a worker own all partitions once. Events that are dropped before a stream
// knows its processor count for no processor, as the processor begins after them.
func (s *storm) register(c *runneltest.Cluster) {
	s.c = c
	w := c.Start(s.name("first"))
	c.Wait(func() bool {
		for p := range stormParts {
			if groups, err := c.Redis().XInfoGroups(c.Context(), partitionKey(p)).Result(); err != nil || len(groups) == 0 {
				return false
			}
		}
		return true
	})
	if err := w.Stop(); err != nil {
		s.t.Errorf("worker %s stopped with %v", w.Name(), err)
	}
}

// losses writes down how many events were lost, by the figures that an operator sees.
func (s *storm) losses() {
	for p := range stormParts {
		own, err := s.c.Redis().HGetAll(s.c.Context(), fmt.Sprintf("__own:sim.parcels.check.%d", p)).Result()
		if err != nil {
			s.t.Fatal(err)
		}
		n := int(stamp(own["lost"]) + stamp(own["gone"]))
		if err := s.log.Write(history.Record{Kind: history.Dropped, Stream: "parcels", Processor: "check", Partition: p, Count: n}); err != nil {
			s.t.Error(err)
		}
	}
}
