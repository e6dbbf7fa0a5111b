// The time by which rows end is that of the partition, under any owner: it never goes back.

package runnel_test

import (
	"context"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

// An event that waits for another attempt is older than those that are done meanwhile. The next owner begins with it, at
// the time of these.
func TestTimeOfRowsOutlivesTheOwner(t *testing.T) {
	stream, table := &runnel.StreamOptions{Partitions: 1}, &runnel.TableOptions{TTL: time.Second}
	var times []time.Time // of the partition
	runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
		s := newSumming(o, stream, table)
		s.process(runnel.Each(func(ctx context.Context, e *runnel.Event, i item) error {
			times = append(times, s.table.Rows(ctx).Now())
			if i.N == 1 && e.Attempt == 1 {
				return errBad
			}
			return s.add(ctx, i)
		}), runnel.ProcessorOptions{
			Lease: time.Second, Retry: &runnel.Retry{Max: 2, Order: runnel.OrderNone, MinBackoff: 10 * time.Second, Jitter: -1},
		})
		return s.app
	}, func(c *runneltest.Cluster) {
		s := newSumming(c.Options("sender"), stream, table)
		defer s.app.Close()
		a := c.Start("a")
		for n := range 2 {
			if err := s.items.Send(c.Context(), item{n + 1}); err != nil {
				t.Fatal(err)
			}
			c.Sleep(2 * time.Second)
		}
		if err := a.Stop(); err != nil {
			t.Error(err)
		}
		c.Start("b")
		c.Sleep(20 * time.Second)
	})
	if len(times) != 3 || !times[1].After(times[0]) || !times[2].Equal(times[1]) {
		t.Errorf("the partition's times are %v, want two, and the second one again", times)
	}
}
