package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
)

// Workers get a hint only for an event that is due before all others.
func TestDelayIsAnnounced(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		try(e.EnsureMeta(e.ctx(), "orders", Meta{Partitions: 4, MaxLen: 100, Processors: []string{"p", "q"}})).must(t)
		heard := func() (n int64) {
			for _, p := range []string{"p", "q"} {
				n += e.raw.XLen(e.ctx(), e.keys.Control("orders", p)).Val()
			}
			return n
		}
		for _, step := range []struct {
			what string
			do   func()
			want int64
		}{
			{"the first", func() { e.delay(later(0, 2, future)...) }, 2},
			{"the same time", func() { e.delay(later(2, 1, future)...) }, 2},
			{"later", func() { e.delay(later(3, 1, future.Add(time.Hour))...) }, 2},
			{"earlier", func() { e.delay(later(4, 1, future.Add(-time.Hour))...) }, 4},
			{"due now", func() { e.delay(later(5, 1, past)...) }, 4},
			{"rescheduled later", func() { e.Reschedule(e.ctx(), "orders", 3, e.waitingIDs()[0], future.Add(2*time.Hour)) }, 4},
			{"rescheduled to the front", func() { e.Reschedule(e.ctx(), "orders", 3, e.waitingIDs()[3], past) }, 6},
		} {
			step.do()
			equal(t, step.what, heard(), step.want)
		}
		got := e.raw.XRange(e.ctx(), e.keys.Control("orders", "q"), "-", "+").Val()[0]
		hint, ok := ParseHint(redisconn.Entry{ID: got.ID, Values: got.Values})
		equal(t, "hint", fmt.Sprint(hint, ok), fmt.Sprint(Hint{HintDue, 3}, true))
	})
}

// A sender that knows of no processor reads the metadata again and notifies a new one.
func TestTheFirstProcessorIsToldOfEarlierEvents(t *testing.T) {
	e := realEnv(t)
	try(e.EnsureMeta(e.ctx(), "orders", Meta{Partitions: 4, MaxLen: 100})).must(t)
	e.delay(later(0, 1, future)...)
	other := newEnv(t, e.addr, true)
	try(other.EnsureMeta(e.ctx(), "orders", Meta{Partitions: 4, MaxLen: 100, Processors: []string{"p"}})).must(t)
	e.delay(later(1, 1, future.Add(-time.Minute))...)
	equal(t, "messages", e.raw.XLen(e.ctx(), e.keys.Control("orders", "p")).Val(), int64(1))
}

// A hint may be urgent, so those of all partitions share one round trip.
func TestHintsOfManyPartitionsTakeOneRoundTrip(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		try(e.EnsureMeta(e.ctx(), "orders", Meta{Partitions: 16, Processors: []string{"p", "q"}})).must(t)
		writes, c := e.counted()
		defer c.Close()
		ds := make([]Append, 16)
		for n := range ds {
			ds[n] = delayed(n, later(n, 1, future)...)
		}
		e.must(c.Append(e.ctx(), ds)[0].Err) // connects, and loads the script
		before := writes.Load()
		for n := range ds {
			ds[n] = delayed(n, later(n, 1, future.Add(-time.Hour))...)
		}
		for _, got := range c.Append(e.ctx(), ds) {
			e.must(got.Err)
		}
		equal(t, "requests: the events and the hints", writes.Load()-before, 2)
		equal(t, "hints", e.raw.XLen(e.ctx(), e.keys.Control("orders", "q")).Val(), 32)
	})
}
