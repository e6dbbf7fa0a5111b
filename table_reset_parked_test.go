// A processor that is set back, without its rows, counts each event once: also those that were parked.

package runnel_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/runneltest"
)

func TestParkedEventsCountOnceBehindAReset(t *testing.T) {
	// What is parked when all else is trimmed: with OrderKey also the event behind it.
	for order, left := range map[runnel.RetryOrder]sum{runnel.OrderKey: {12, 2}, runnel.OrderNone: {5, 1}, runnel.OrderPartition: {5, 1}} {
		for _, trimmed := range []bool{false, true} {
			t.Run(fmt.Sprint(order, ", trimmed: ", trimmed), func(t *testing.T) {
				var mended atomic.Bool
				declare := func(o *runnel.Options) (app *runnel.App, s *runnel.Stream[item], table *runnel.Table[sum]) {
					app = runnel.New("contract", o)
					s = runnel.NewStream(app, "items", func(item) string { return "x" }, &runnel.StreamOptions{Partitions: 1})
					table = runnel.NewTable[sum](s, "sums", nil)
					s.Process("p", runnel.Each(func(ctx context.Context, _ *runnel.Event, i item) error {
						table.Rows(ctx).Update("x", func(row sum) sum { return sum{row.Total + i.N, row.Times + 1} })
						if i.N == 5 && !mended.Load() {
							return errBad
						}
						return nil
					}), &runnel.ProcessorOptions{Tables: []runnel.State{table}, Lease: 3 * time.Second, Retry: &runnel.Retry{Max: 100, MaxBackoff: 5 * time.Second, Order: order}})
					return app, s, table
				}
				runneltest.Sim(t, func(o *runnel.Options) *runnel.App { app, _, _ := declare(o); return app }, func(c *runneltest.Cluster) {
					app, s, table := declare(c.Options("operator"))
					defer app.Close()
					w := c.Start("a")
					c.Sleep(5 * time.Second)
					if err := s.Send(c.Context(), item{1}, item{5}, item{7}); err != nil {
						t.Fatal(err)
					}
					c.Sleep(time.Second)
					w.Kill()
					c.Sleep(20 * time.Second)
					mended.Store(true)
					want := sum{13, 3}
					if trimmed {
						c.Redis().XTrimMaxLen(c.Context(), "__strm:contract.items.0", 0)
						want = left
					}
					at := admin.New(app).Positions("items", "p").WithRows(admin.ClearRows)
					start, err := at.Find(c.Context(), "start")
					if err == nil {
						_, err = at.Set(c.Context(), start)
					}
					if err != nil {
						t.Fatal(err)
					}
					c.Start("b")
					c.Sleep(time.Minute)
					if row, _, err := table.Get(c.Context(), "x"); err != nil || row != want {
						t.Errorf("the row is %v, %v, want %v", row, err, want)
					}
				})
			})
		}
	}
}

// With its rows, what is parked behind the new position is processed from there alone, whether its attempt or the log comes first.
func TestParkedEventsCountOnceBehindAResetThatKeepsRows(t *testing.T) {
	for _, backoff := range []time.Duration{2 * time.Second, time.Minute} {
		t.Run(fmt.Sprint(backoff), func(t *testing.T) {
			var mended atomic.Bool
			declare := func(o *runnel.Options) (app *runnel.App, s *runnel.Stream[item], table *runnel.Table[sum]) {
				app = runnel.New("contract", o)
				s = runnel.NewStream(app, "items", func(item) string { return "x" }, &runnel.StreamOptions{Partitions: 1})
				table = runnel.NewTable[sum](s, "sums", nil)
				s.Process("p", runnel.Each(func(ctx context.Context, _ *runnel.Event, i item) error {
					if !mended.Load() {
						return errBad
					}
					table.Rows(ctx).Update("x", func(row sum) sum { return sum{row.Total + i.N, row.Times + 1} })
					return nil
				}), &runnel.ProcessorOptions{Tables: []runnel.State{table}, Lease: 3 * time.Second, Retry: &runnel.Retry{Max: 5, MinBackoff: backoff, MaxBackoff: backoff, Order: runnel.OrderNone}})
				return app, s, table
			}
			runneltest.Sim(t, func(o *runnel.Options) *runnel.App { app, _, _ := declare(o); return app }, func(c *runneltest.Cluster) {
				app, s, table := declare(c.Options("operator"))
				defer app.Close()
				w := c.Start("a")
				c.Sleep(5 * time.Second)
				if err := s.Send(c.Context(), item{1}, item{5}); err != nil {
					t.Fatal(err)
				}
				c.Sleep(time.Second)
				w.Kill()
				c.Sleep(20 * time.Second)
				mended.Store(true)
				at := admin.New(app).Positions("items", "p").WithRows(admin.KeepRows)
				start, err := at.Find(c.Context(), "start")
				if err == nil {
					_, err = at.Set(c.Context(), start)
				}
				if err != nil {
					t.Fatal(err)
				}
				c.Start("b")
				c.Sleep(3 * time.Minute)
				if row, _, err := table.Get(c.Context(), "x"); err != nil || row != (sum{6, 2}) {
					t.Errorf("the row is %v, %v, want each of two events once", row, err)
				}
			})
		})
	}
}
