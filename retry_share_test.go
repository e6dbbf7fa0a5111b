// Keys that fail leave half of their partition to the others.

package runnel_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
)

// A shared partition has keys that fail each time and others that do not.
type shared struct {
	name      string
	order     runnel.RetryOrder
	most      int
	fails, ok time.Duration // how long an iteration takes
	batch     int
	more      int // events of failing keys between two others

	begun     atomic.Bool
	good, bad atomic.Int64 // iterations of other keys, attempts of parked events
	done      atomic.Int64 // events of other keys
}

const failingKeys, healthyEvents = 15, 100

func (s *shared) process(events []*runnel.Event, is []item) error {
	var failed []*runnel.Event
	for n, i := range is {
		if i.N < failingKeys {
			failed = append(failed, events[n])
		}
	}
	if len(failed) == 0 {
		time.Sleep(s.ok)
		s.good.Add(1)
		s.done.Add(int64(len(is)))
		return nil
	}
	if s.begun.Load() && events[0].Attempt > 1 {
		s.bad.Add(1)
	}
	time.Sleep(s.fails)
	return runnel.FailedEvents(errBad, failed...)
}

func (s *shared) simulate(t *testing.T) {
	fn := runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
		return s.process([]*runnel.Event{e}, []item{i})
	})
	if s.batch > 0 {
		fn = runnel.EachBatch(s.batch, 10*time.Millisecond, func(_ context.Context, es []*runnel.Event, is []item) error { return s.process(es, is) })
	}
	opts := &runnel.ProcessorOptions{Retry: &runnel.Retry{
		Max: s.most, Order: s.order, MinBackoff: 200 * time.Millisecond, MaxBackoff: 200 * time.Millisecond, Jitter: -1,
	}}
	simulation{}.run(t, fn, opts, func(c *simulated) { s.run(t, c) })
}

// numbers are those of the other keys, with more of the failing ones in between.
func (s *shared) numbers() (numbers []int) {
	for n := range healthyEvents {
		for m := range s.more {
			numbers = append(numbers, (n+m)%failingKeys)
		}
		numbers = append(numbers, failingKeys+n%50)
	}
	return numbers
}

func (s *shared) run(t *testing.T, c *simulated) {
	ready(c.Cluster, "a")
	for n := range failingKeys {
		c.send(n)
	}
	c.Sleep(10 * time.Second)
	s.begun.Store(true)
	began := time.Now()
	c.send(s.numbers()...)
	for end := time.Now().Add(5 * time.Minute); s.done.Load() < healthyEvents && time.Now().Before(end); {
		c.Sleep(10 * time.Millisecond)
	}
	took, n, retries := time.Since(began), s.good.Load(), s.bad.Load()
	t.Logf("%d iterations of other keys and %d of parked events in %v", n, retries, took)
	if s.done.Load() < healthyEvents || retries > n+1 {
		t.Errorf("%d of %d events of other keys in %d iterations, beside %d of parked ones", s.done.Load(), healthyEvents, n, retries)
	}
	if spent := time.Duration(retries) * s.fails; spent > took/2+took/8+2*s.fails {
		t.Errorf("attempts of parked events took %v of %v", spent, took)
	}
}

// However many keys fail, and however long that takes, new events of the others get at
// least half of a partition's iterations, and of its time.
func TestFailingKeysLeaveHalfOfAPartitionToOthers(t *testing.T) {
	const ms = time.Millisecond
	for _, s := range []*shared{
		{name: "slow failures", order: runnel.OrderKey, most: 1000, fails: 100 * ms, ok: 10 * ms},
		{name: "slow failures of events", order: runnel.OrderNone, most: 1000, fails: 100 * ms, ok: 10 * ms},
		{name: "quick failures", order: runnel.OrderKey, most: 1000, fails: ms, ok: 50 * ms},
		{name: "few attempts", order: runnel.OrderKey, most: 2, fails: 100 * ms, ok: 10 * ms, more: 2},
		{name: "more of the failing keys", order: runnel.OrderKey, most: 1000, fails: 100 * ms, ok: 10 * ms, more: 4},
		{name: "batches", order: runnel.OrderKey, most: 1000, fails: 100 * ms, ok: 10 * ms, batch: 5},
		{name: "batches of events", order: runnel.OrderNone, most: 1000, fails: 100 * ms, ok: 100 * ms, batch: 5},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.simulate(t)
		})
	}
}
