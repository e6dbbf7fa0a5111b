package worker

import (
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/rows"
)

// Stats are a worker's counters, and what it holds at the moment.
type Stats struct {
	Worker     string
	Began      time.Time
	Ready      error // nil: it is; see Worker.Ready
	Counters   *Counters
	Processors []ProcessorStats // in the order of registration
}

// ProcessorStats are the Stats of one processor. Parts of it are read one after the other.
type ProcessorStats struct {
	Stream, Processor string
	Counters          *Counters
	Tables            []rows.Config // that it has: their names and budgets
	Atomic            bool

	Partitions int   // that there are
	Joined     bool  // the executor is a member
	Generation int64 // of the membership that is followed
	Members    int
	Assigned   []int // partitions
	Owned      []int // partitions whose lease holds
	Waiting    int   // events read and not yet taken by the function
	Bytes      int64 // of these
	Unacked    int   // events processed and not yet confirmed
	Running    int   // partitions whose function has an event

	Timed   bool // the following were measured
	Handler Histogram
	Delay   Histogram
}

// Stats returns a snapshot. It may be called at any time, concurrently, and does not call Redis.
func (w *Worker) Stats() *Stats {
	s := &Stats{Worker: w.name, Began: w.began, Ready: w.Ready(), Counters: w.count}
	for _, x := range w.executors {
		s.Processors = append(s.Processors, x.stats())
	}
	return s
}

func (x *executor) stats() ProcessorStats {
	s := ProcessorStats{Stream: x.p.Stream, Processor: x.p.Name, Partitions: x.p.Partitions, Tables: x.p.Tables, Atomic: x.p.Atomic, Counters: x.count, Timed: x.latencies.on}
	s.Handler, s.Delay = x.latencies.sums()
	m := x.member()
	if m == nil {
		return s
	}
	state := m.coord.State()
	s.Joined, s.Generation, s.Members, s.Assigned = state.Joined, state.Generation, state.Members, state.Assigned
	now := monotime.Now()
	for _, p := range m.ownerships.owned() {
		if p.lease.holdsAt(now) {
			s.Owned = append(s.Owned, p.keys.Number)
		}
		if others, _ := p.calls.running(&p.held); p.running.Load() != 0 || others != 0 {
			s.Running++
		}
		waiting, bytes, unacked := p.buffer.Held()
		s.Waiting, s.Bytes, s.Unacked = s.Waiting+waiting, s.Bytes+bytes, s.Unacked+unacked
	}
	slices.Sort(s.Owned)
	return s
}
