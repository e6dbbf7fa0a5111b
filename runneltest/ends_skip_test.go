package runneltest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/runneltest"
)

// A quarantine at the end of a row is released: with skip the row stays without that end, by any owner, and has others later.
func TestAQuarantineAtARowsEndIsReleased(t *testing.T) {
	const bad = "bad\x00\xff"
	for _, skip := range []bool{false, true} {
		var orders *runnel.Stream[order]
		var app *runnel.App
		var ended []string
		mended := false
		build := func(o *runnel.Options) *runnel.App {
			app = runnel.New("sim", o)
			orders = runnel.NewStream(app, "orders", func(o order) string { return o.Customer }, &runnel.StreamOptions{Partitions: 1})
			sums := runnel.NewTable[int](orders, "sums", &runnel.TableOptions{TTL: 10 * time.Second})
			sums.OnExpire(func(_ context.Context, key string, sum int) error {
				if ended = append(ended, fmt.Sprint(key, sum)); key == bad && !mended {
					return errors.New("no")
				}
				return nil
			})
			orders.Process("p", runnel.Each(func(ctx context.Context, _ *runnel.Event, o order) error {
				sums.Rows(ctx).Update(o.Customer, func(sum int) int { return sum + o.Amount })
				return nil
			}), &runnel.ProcessorOptions{OnError: runnel.Quarantine, Tables: []runnel.State{sums}})
			return app
		}
		runneltest.Sim(t, build, func(c *runneltest.Cluster) {
			w := c.Start("a")
			send := func(all ...order) {
				t.Helper()
				if err := orders.Send(c.Context(), all...); err != nil {
					t.Error(err)
				}
			}
			is := func(want ...string) {
				t.Helper()
				c.Sleep(15 * time.Second)
				if fmt.Sprint(ended) != fmt.Sprint(want) {
					t.Errorf("skip %v: ended %q, want %q", skip, ended, want)
				}
			}
			c.Wait(func() bool { return w.App().Ready() == nil })
			send(order{bad, 1})
			c.Sleep(time.Second)
			send(order{"good", 2})
			is(bad + "1")
			mended = !skip
			if _, err := admin.New(app).Release(c.Context(), "orders", "p", 0, skip); err != nil {
				t.Error(err)
			}
			if !skip {
				is(bad+"1", bad+"1", "good2")
				return
			}
			is(bad+"1", "good2")
			w.Kill()
			c.Start("b")
			is(bad+"1", "good2")
			send(order{bad, 3})
			is(bad+"1", "good2", bad+"4")
		})
	}
}
