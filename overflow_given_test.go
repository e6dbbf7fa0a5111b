// DropOldest takes nothing from a worker that has it.

package runnel_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
)

// What a worker was given and DropOldest has removed is processed all the same, also if its connections break meanwhile.
func TestWhatAnOwnerHasIsProcessedThoughItWasDropped(t *testing.T) {
	for _, reads := range []runnel.Reads{runnel.ByGroup, runnel.ByPosition} {
		t.Run(fmt.Sprint(reads), func(t *testing.T) {
			var n notes
			fn := runnel.Each(func(ctx context.Context, e *runnel.Event, i item) error {
				n.add(fmt.Sprint(i.N))
				time.Sleep(200 * time.Millisecond)
				return nil
			})
			opts := &runnel.ProcessorOptions{Reads: reads, Lease: 10 * time.Second, Prefetch: 1000}
			simulation{stream: &runnel.StreamOptions{Partitions: 1, MaxLen: 8, Overflow: runnel.DropOldest}}.run(t, fn, opts, func(c *simulated) {
				a := ready(c.Cluster, "a")
				c.send(1, 2, 3, 4, 5, 6, 7, 8)
				c.Sleep(100 * time.Millisecond) // all were read
				c.send(11, 12, 13, 14, 15, 16, 17, 18)
				c.Sleep(100 * time.Millisecond)
				c.send(21, 22, 23, 24, 25, 26, 27, 28)
				a.Cut()
				c.Sleep(time.Minute)
				for i := 1; i < 9; i++ {
					if !slices.Contains(n.all(), fmt.Sprint(i)) {
						t.Errorf("%d was read by the owner, and is not processed", i)
					}
				}
			})
		})
	}
}
