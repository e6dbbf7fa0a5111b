package runneltest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/runneltest"
)

// badKey is the key of a row whose end fails until that is mended.
const badKey = "bad\x00\xff"

// A badEnd is an app with sums that end, and what has ended.
type badEnd struct {
	app    *runnel.App
	orders *runnel.Stream[order]

	mu     sync.Mutex
	mended bool
	ended  []string
}

func (b *badEnd) build(o *runnel.Options) *runnel.App {
	b.app = runnel.New("sim", o)
	b.orders = runnel.NewStream(b.app, "orders", func(o order) string { return o.Customer }, &runnel.StreamOptions{Partitions: 1})
	sums := runnel.NewTable[int](b.orders, "sums", &runnel.TableOptions{TTL: 10 * time.Second})
	sums.OnExpire(func(_ context.Context, key string, sum int) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.ended = append(b.ended, fmt.Sprint(key, sum)); key == badKey && !b.mended {
			return errors.New("no")
		}
		return nil
	})
	b.orders.Process("p", runnel.Each(func(ctx context.Context, _ *runnel.Event, o order) error {
		sums.Rows(ctx).Update(o.Customer, func(sum int) int { return sum + o.Amount })
		return nil
	}), &runnel.ProcessorOptions{OnError: runnel.Quarantine, Tables: []runnel.State{sums}})
	return b.app
}

// is waits until rows have ended, and looks which have.
func (b *badEnd) is(t *testing.T, c *runneltest.Cluster, want ...string) {
	t.Helper()
	c.Sleep(15 * time.Second)
	b.mu.Lock()
	defer b.mu.Unlock()
	if fmt.Sprint(b.ended) != fmt.Sprint(want) {
		t.Errorf("ended %q, want %q", b.ended, want)
	}
}

// A quarantine at the end of a row is released: with skip the row stays without that end, by any owner, and has others later.
func TestAQuarantineAtARowsEndIsReleased(t *testing.T) {
	for _, skip := range []bool{false, true} {
		b := &badEnd{}
		runneltest.Sim(t, b.build, func(c *runneltest.Cluster) {
			w := c.Start("a")
			send := func(o order) {
				t.Helper()
				if err := b.orders.Send(c.Context(), o); err != nil {
					t.Error(err)
				}
			}
			c.Wait(func() bool { return w.App().Ready() == nil })
			send(order{badKey, 1})
			c.Sleep(time.Second)
			send(order{"good", 2})
			b.is(t, c, badKey+"1")
			b.mu.Lock()
			b.mended = !skip
			b.mu.Unlock()
			if _, err := admin.New(b.app).Release(c.Context(), "orders", "p", 0, skip); err != nil {
				t.Error(err)
			}
			if !skip {
				b.is(t, c, badKey+"1", badKey+"1", "good2")
				return
			}
			b.is(t, c, badKey+"1", "good2")
			w.Kill()
			c.Start("b")
			b.is(t, c, badKey+"1", "good2")
			send(order{badKey, 3})
			b.is(t, c, badKey+"1", "good2", badKey+"4")
		})
	}
}
