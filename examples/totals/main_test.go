package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

func TestTotal(t *testing.T) {
	s := register(runnel.New("shop", nil))
	script := runneltest.Events(t, s.orders, "total").Records(Order{"ada", 100}, Order{"bob", 5}, Order{"ada", 20})
	got := runneltest.SetRows(script, s.totals, map[string]Spent{"ada": {1, 1000}}).Run()
	rows := runneltest.Rows(t, got, s.totals)
	if got.Err != nil || len(rows) != 2 || rows["ada"] != (Spent{3, 1120}) || rows["bob"] != (Spent{1, 5}) {
		t.Errorf("rows %v, %v", rows, got.Err)
	}
}

// One worker dies, and another one stands still for longer than its lease, while orders come. The totals are those of each
// order once.
func TestTotalsAreExact(t *testing.T) {
	const customers, orders = 5, 300
	build := func(o *runnel.Options) *runnel.App {
		app := runnel.New("shop", o)
		register(app)
		return app
	}
	runneltest.Sim(t, build, func(c *runneltest.Cluster) {
		app := runnel.New("shop", c.Options("sender"))
		defer app.Close()
		s := register(app)
		want := map[string]Spent{}
		c.Latency(5 * time.Millisecond)
		a, b := c.Start("a"), c.Start("b")
		for i := range orders {
			o := Order{fmt.Sprint("customer", i%customers), i}
			want[o.Customer] = Spent{want[o.Customer].Orders + 1, want[o.Customer].Cents + o.Cents}
			if err := s.orders.Send(c.Context(), o); err != nil {
				t.Fatal(err)
			}
			switch i {
			case orders / 3:
				a.Kill()
				c.Start("c")
			case orders / 2:
				b.Freeze(time.Minute)
			}
			c.Sleep(100 * time.Millisecond)
		}
		total := func() (sum int) {
			for row, err := range s.totals.All(c.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				sum += row.Value.Orders
			}
			return sum
		}
		c.Wait(func() bool { return total() >= orders })
		c.Sleep(2 * time.Minute) // for what b still wants to store
		for customer, row := range want {
			if got, ok, err := s.totals.Get(c.Context(), customer); !ok || err != nil || got != row {
				t.Errorf("%s: %v, %v, %v, want %v", customer, got, ok, err, row)
			}
		}
	})
}
