package main

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

// A worker dies when it has sent everything that an order causes and has not acked the order.
// The next one sends it all again.
func TestCrashCausesNothingTwice(t *testing.T) {
	var (
		mu        sync.Mutex
		came      []string
		duplicate int // sends that appended nothing
	)
	count := func(ctx context.Context, call *runnel.Sending) func([]runnel.Sent, error) {
		return func(sent []runnel.Sent, err error) {
			mu.Lock()
			defer mu.Unlock()
			for _, s := range sent {
				if s.Duplicate {
					duplicate++
				}
			}
			if w := runneltest.WorkerOf(ctx); call.Stream == "parcels" && w.Name() == "a" {
				w.Kill()
			}
		}
	}
	build := func(o *runnel.Options) *runnel.App {
		o.SendHooks = []runnel.SendHook{count}
		app := runnel.New("shop", o)
		if s := register(app); o.WorkerName == "c" {
			s.handle(func(what string) {
				mu.Lock()
				defer mu.Unlock()
				came = append(came, what)
			})
		}
		return app
	}
	runneltest.Sim(t, build, func(c *runneltest.Cluster) {
		app := runnel.New("shop", c.Options("sender"))
		defer app.Close()
		if err := register(app).orders.Send(c.Context(), Order{"7", []string{"ink", "paper"}}); err != nil {
			t.Fatal(err)
		}
		a := c.Start("a")
		<-a.Done()
		c.Start("b")
		c.Sleep(time.Minute)
		c.Start("c") // which also processes what came out
		c.Sleep(time.Minute)
	})
	if duplicate != 3 {
		t.Errorf("%d sends appended nothing, want 3: what b repeats", duplicate)
	}
	slices.Sort(came)
	if want := []string{"invoice for 2 items of order 7", "parcel with ink of order 7", "parcel with paper of order 7"}; !slices.Equal(came, want) {
		t.Errorf("came out: %q, want %q", came, want)
	}
}
