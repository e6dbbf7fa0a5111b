package runnel_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

// A processor that begins at the end has begun: what is sent after a flush is processed,
// also in a partition that its next owner never owned before.
func TestAFlushLosesNothingThatIsSentAfterItFromStartEnd(t *testing.T) {
	const partitions, flushes, each = 16, 4, 50
	var n notes
	fn := runnel.Each(func(_ context.Context, _ *runnel.Event, i item) error { n.add(fmt.Sprint(i.N)); return nil })
	cluster(t, partitions, fn, &runnel.ProcessorOptions{Start: runnel.StartEnd}, func(c *runneltest.Cluster, send func(...int)) {
		ready(c, "a")
		ready(c, "b")
		c.Sleep(20 * time.Second)
		for flush := range flushes {
			if err := c.Redis().FlushAll(c.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			for i := range each {
				send(flush*each + i)
			}
			c.Sleep(20 * time.Second)
		}
		missing := 0
		for i := range flushes * each {
			if !n.has(fmt.Sprint(i)) {
				missing++
			}
		}
		if missing > 0 {
			t.Errorf("%d of %d events that were sent after a flush were never processed", missing, flushes*each)
		}
	})
}
