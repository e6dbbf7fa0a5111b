// What was taken out of a partition is not processed when it comes again.

package runnel_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
)

// A dead letter comes again with the event before it, whose ack got lost. That one fails this time, and the partition waits for it;
// then it moves to another worker.
func TestADeadLetterThatComesAgainIsNotProcessed(t *testing.T) {
	for _, last := range []runnel.Reads{runnel.ByGroup, runnel.ByPosition} {
		t.Run(fmt.Sprint(last), func(t *testing.T) {
			var lost atomic.Bool
			var n notes
			worker := func(o *runnel.Options) {
				if o.WorkerName == "a" {
					withoutAcks(o, &lost)
				}
				if o.WorkerName == "c" {
					o.Processor.Reads = last
				}
			}
			fn := runnel.EachBatch(1, 50*time.Millisecond, func(ctx context.Context, es []*runnel.Event, is []item) error {
				n.add(attempt(ctx, es[0], is[0]))
				w := n.all()[len(n.all())-1][:1]
				switch {
				case is[0].N == 2 && w == "a":
					return runnel.DeadLetter(errBad)
				case is[0].N == 1 && w == "b":
					return runnel.RetryAfter(errBad, 20*time.Second)
				}
				return nil
			})
			opts := &runnel.ProcessorOptions{Lease: time.Second, Retry: &runnel.Retry{Max: 3, Order: runnel.OrderPartition}}
			simulation{worker: worker}.run(t, fn, opts, func(c *simulated) {
				a := ready(c.Cluster, "a")
				lost.Store(true)
				c.send(1, 2, 3)
				c.Sleep(500 * time.Millisecond)
				a.Kill()
				b := ready(c.Cluster, "b")
				c.Sleep(5 * time.Second)
				c.stop(b) // a rolling restart
				ready(c.Cluster, "c")
				c.Sleep(time.Minute)
				if n.has("c 2#1") {
					t.Error("2 is a dead letter, and was processed")
				}
			})
		})
	}
}
