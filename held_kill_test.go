// A commit that waits for room is of events that were processed: what ends workers meanwhile is not blamed on these.

package runnel_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

func TestACrashWhileACommitWaitsIsNotTheEventsDoing(t *testing.T) {
	retry := &runnel.Retry{Max: 2, MinBackoff: time.Second, MaxBackoff: time.Second}
	for way, opts := range map[string]runnel.ProcessorOptions{
		"retry": {Retry: retry}, "parked": {Retry: retry}, "ignored": {OnError: runnel.Ignore},
	} {
		t.Run(way, func(t *testing.T) {
			var n notes
			declare := func(o *runnel.Options) (app *runnel.App, s *runnel.Stream[item], to *runnel.Stream[sum], table *runnel.Table[sum]) {
				app = runnel.New("contract", o)
				s = runnel.NewStream(app, "items", mod10, &runnel.StreamOptions{Partitions: 1})
				to = runnel.NewStream(app, "sums", func(sum) string { return "0" }, &runnel.StreamOptions{Partitions: 1, MaxLen: 1})
				return app, s, to, runnel.NewTable[sum](s, "sums", nil)
			}
			runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
				app, s, to, table := declare(o)
				opts := opts
				opts.Tables, opts.Lease = []runnel.State{table}, 3*time.Second
				s.Process("p", runnel.Each(func(ctx context.Context, e *runnel.Event, i item) error {
					n.add(attempt(ctx, e, i))
					if way == "parked" && len(n.all()) == 1 {
						return errBad
					}
					row := table.Rows(ctx).Update("x", func(row sum) sum { return sum{row.Total + i.N, row.Times + 1} })
					return to.Emit(ctx, row)
				}), &opts)
				return app
			}, func(c *runneltest.Cluster) {
				app, s, to, table := declare(c.Options("sender"))
				defer app.Close()
				if err := to.Send(c.Context(), sum{}); err != nil {
					t.Fatal(err)
				}
				w := c.Start("w0")
				c.Sleep(5 * time.Second)
				if err := s.Send(c.Context(), item{1}); err != nil {
					t.Fatal(err)
				}
				for k := range 4 {
					c.Sleep(time.Minute)
					w.Kill()
					w = c.Start(fmt.Sprint("w", k+1))
				}
				c.Sleep(time.Minute)
				c.Redis().XTrimMaxLen(c.Context(), "__strm:contract.sums.0", 0)
				c.Sleep(time.Minute)
				row, _, err := table.Get(c.Context(), "x")
				if err != nil || (row != sum{1, 1}) {
					t.Errorf("%q came to %v, %v, with %d dead letters", n.all(), row, err, c.Redis().XLen(c.Context(), "__dead:contract.items.p.0").Val())
				}
			})
		})
	}
}
