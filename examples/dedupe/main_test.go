package main

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

func TestEachPaymentIsPassedOnOnce(t *testing.T) {
	b := register(runnel.New("bank", nil))
	began := time.UnixMilli(1_700_000_000_000)
	one, two, three := Payment{"1", "ada", 100}, Payment{"2", "ada", 100}, Payment{"3", "ada", 100}
	bob := Payment{"1", "bob", 100} // has another account's ID

	script := runneltest.Events(t, b.told, "dedupe").Appended(began).Records(one, two, one, bob, three, two).
		Appended(began.Add(23*time.Hour)).Records(one, bob).
		Appended(began.Add(24 * time.Hour)).Records(one)
	got := runneltest.SetRows(script, b.seen, map[string]bool{"ada/3": true}).Run()

	want := []Payment{one, two, bob, one} // the last one is a payment of the next day
	if passed := runneltest.Emitted(t, got, b.payments); got.Err != nil || !slices.Equal(passed, want) {
		t.Errorf("passed on %v, want %v; %v", passed, want, got.Err)
	}
	if rows := runneltest.Rows(t, got, b.seen); len(rows) != 1 || !rows["ada/1"] {
		t.Errorf("a day later %v is remembered, want ada/1", rows)
	}
}

// A worker dies while payments are told twice each. What it and the next one pass on is each payment once, in order.
func TestCrashDoublesNothing(t *testing.T) {
	const payments = 200
	var (
		mu   sync.Mutex
		came []Payment
	)
	build := func(o *runnel.Options) *runnel.App {
		app := runnel.New("bank", o)
		if b := register(app); o.WorkerName == "c" {
			b.payments.Process("book", runnel.Each(func(_ context.Context, _ *runnel.Event, p Payment) error {
				mu.Lock()
				defer mu.Unlock()
				came = append(came, p)
				return nil
			}), nil)
		}
		return app
	}
	var want []Payment
	runneltest.Sim(t, build, func(c *runneltest.Cluster) {
		app := runnel.New("bank", c.Options("sender"))
		defer app.Close()
		b := register(app)
		c.Latency(20 * time.Millisecond)
		a := c.Start("a")
		c.Sleep(time.Minute)
		for n := range payments {
			want = append(want, Payment{strconv.Itoa(n), "ada", n})
			if err := b.told.Send(c.Context(), want[n], want[n]); err != nil {
				t.Fatal(err)
			}
			c.Sleep(time.Millisecond)
			if n == payments/2 {
				a.Kill()
				c.Start("b")
			}
		}
		c.Sleep(time.Minute)
		c.Start("c") // which also books
		c.Sleep(time.Minute)
	})
	if !slices.Equal(came, want) {
		t.Errorf("%d payments were passed on, want %d: %v", len(came), len(want), came)
	}
}
