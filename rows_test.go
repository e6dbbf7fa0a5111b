// The time by which rows end is that of the partition, under any owner: it never goes back.

package runnel_test

import (
	"context"
	"strings"
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

// A row of another partition cannot be read or changed: a balance that is not there looks like one of none. A test
// without Redis tells so, too, though its events are all in one partition.
func TestRowsOfOtherPartitions(t *testing.T) {
	for _, local := range []bool{false, true} {
		s := newSumming(nil, nil, &runnel.TableOptions{Local: local})
		uses := map[string]func(r *runnel.Rows[sum], key string){
			"Get":    func(r *runnel.Rows[sum], key string) { r.Get(key) },
			"Set":    func(r *runnel.Rows[sum], key string) { r.Set(key, sum{}) },
			"Delete": func(r *runnel.Rows[sum], key string) { r.Delete(key) },
		}
		var use func(r *runnel.Rows[sum], key string)
		s.process(runnel.EachBatch(2, 0, func(ctx context.Context, _ []*runnel.Event, is []item) error {
			rows := s.table.Rows(ctx)
			for _, i := range is {
				use(rows, mod10(i))
			}
			use(rows, "elsewhere")
			return nil
		}), runnel.ProcessorOptions{OnError: runnel.Ignore})
		for name, fn := range uses {
			use = fn
			r := runneltest.Process(t, s.items, "p", items(1, 2)...)
			told := len(r.IgnoredErrs) == 1 && strings.Contains(r.IgnoredErrs[0].Error(), name+`: key "elsewhere" belongs to partition`)
			if told == local || local && len(r.IgnoredErrs) > 0 {
				t.Errorf("local %v, %s: %v", local, name, r.IgnoredErrs)
			}
		}
	}
}
