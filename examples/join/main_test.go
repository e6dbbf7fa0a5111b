package main

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

func TestJoin(t *testing.T) {
	s := register(runnel.New("shop", nil))
	order := func(id string) Pair { return Pair{ID: id, Order: &Order{id, "ada"}} }
	payment := func(id string) Pair { return Pair{ID: id, Payment: &Payment{"bank", id, 5}} }

	got := runneltest.Process(t, s.halves, "join", order("1"), payment("2"), payment("1"), order("3"), order("2"))

	paid := runneltest.Emitted(t, got, s.paid)
	if got.Err != nil || len(paid) != 2 || paid[0].ID != "1" || paid[1].ID != "2" || paid[1].Order.Customer != "ada" || paid[1].Payment.Cents != 5 {
		t.Errorf("paid %v, %v", paid, got.Err)
	}
	if ids := slices.Collect(maps.Keys(runneltest.Rows(t, got, s.waiting))); !slices.Equal(ids, []string{"3"}) {
		t.Errorf("orders %v wait for their payment, want 3", ids)
	}
}

// A worker dies while orders and payments come. Each order is paid once.
func TestEachPairComesOnce(t *testing.T) {
	const orders = 50
	var (
		mu   sync.Mutex
		came []int
	)
	build := func(o *runnel.Options) *runnel.App {
		app := runnel.New("shop", o)
		if s := register(app); o.WorkerName == "last" {
			s.paid.Process("ship", runnel.Each(func(_ context.Context, _ *runnel.Event, p Pair) error {
				mu.Lock()
				defer mu.Unlock()
				came = append(came, p.Payment.Cents)
				return nil
			}), nil)
		}
		return app
	}
	runneltest.Sim(t, build, func(c *runneltest.Cluster) {
		app := runnel.New("shop", c.Options("sender"))
		defer app.Close()
		s := register(app)
		c.Latency(5 * time.Millisecond)
		a := c.Start("a")
		c.Start("b")
		for n := range orders {
			id := strconv.Itoa(n)
			if err := s.orders.Send(c.Context(), Order{id, "ada" + id}); err != nil {
				t.Fatal(err)
			}
			if err := s.payments.Send(c.Context(), Payment{"bank" + id, id, n}); err != nil {
				t.Fatal(err)
			}
			if n == orders/2 {
				a.Kill()
				c.Start("c")
			}
			c.Sleep(100 * time.Millisecond)
		}
		c.Sleep(30 * time.Second)
		c.Start("last") // which also ships
		c.Sleep(30 * time.Second)
	})
	slices.Sort(came)
	if len(came) != orders || len(slices.Compact(slices.Clone(came))) != orders {
		t.Errorf("%d payments came, want each of %d once: %v", len(came), orders, came)
	}
}
