// Events that fail, batches, middleware, streams that are full and rows that end, while workers are killed.

//go:build unix

package exact_test

import (
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/tier"
)

// deliveries are the ways in which events are processed, fail and are given up.
var deliveries = []struct {
	name  string
	setup setup
	kills int
}{
	{"retry of the partition", setup{Order: runnel.OrderPartition}, 8},
	{"retry of the key", setup{Order: runnel.OrderKey}, 8},
	{"retry of the event", setup{Order: runnel.OrderNone}, 8},
	{"batches", setup{Batch: 8}, 8},
	{"batches that fail", setup{Batch: 8, Order: runnel.OrderPartition}, 8},
	{"batches that fail by key", setup{Batch: 8, Order: runnel.OrderKey}, 8},
	{"next twice", setup{Twice: true}, 8},
	{"next twice with retries", setup{Twice: true, Order: runnel.OrderKey}, 8},
	{"next twice with batches", setup{Twice: true, Batch: 8}, 8},
	{"ignored", setup{Policy: runnel.Ignore}, 2}, // three deaths would make any event one that failed
	{"quarantined", setup{Policy: runnel.Quarantine}, 2},
	{"full", setup{Narrow: true}, 8},
	{"full with retries", setup{Narrow: true, Order: runnel.OrderKey, Batch: 8}, 8},
	{"rows that end", setup{TTL: true}, 8},
	{"by outbox", setup{Layout: keys.Cluster, Order: runnel.OrderKey}, 8},
	{"by outbox, full", setup{Layout: keys.Cluster, Narrow: true, Batch: 8}, 8},
}

// What fails leaves nothing until it succeeds, and what is given up leaves nothing at all.
func TestDeliveries(t *testing.T) {
	tier.Slow(t)
	t.Parallel()
	for _, d := range deliveries {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			c, _ := onServer(t, d.setup)
			c.reap(crewSize)
			stop := c.releases()
			defer stop()
			wait := c.produce(c.setup.URL, events(4_000), 10, 10*time.Millisecond)
			for n := range d.kills {
				c.rest(300 * time.Millisecond)
				c.reap(crewSize)
				c.kill(c.pick())
				if n%2 == 1 { // a full stream keeps none from ending
					c.reap(crewSize)
					c.terminate(c.pick())
				}
			}
			wait()
			c.finish(crewSize)
		})
	}
}

// releases ends quarantines until stop is called.
func (c *crew) releases() (stop func()) {
	if c.setup.Policy != runnel.Quarantine {
		return func() {}
	}
	a := c.setup.declare(c.setup.URL)
	operator, end, done := admin.New(a.App), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer a.Close()
		for n := 0; ; {
			select {
			case <-end:
				c.t.Logf("%d quarantines were released", n)
				return
			case <-time.After(100 * time.Millisecond):
			}
			list, err := operator.Quarantines(c.t.Context())
			if err != nil {
				continue // the streams are not there yet
			}
			for _, q := range list {
				if _, err := operator.Release(c.t.Context(), q.Stream, q.Processor, q.Partition, false); err == nil {
					n++
				}
			}
		}
	}()
	return func() {
		close(end)
		<-done
	}
}
