package runneltest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

// journal notes which worker processed what.
type journal struct {
	mu   sync.Mutex
	done []string // "<worker> <amount>"
}

func (j *journal) note(ctx context.Context, o order) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.done = append(j.done, fmt.Sprint(runneltest.WorkerOf(ctx).Name(), " ", o.Amount))
}

func (j *journal) len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.done)
}

// shop builds apps with one stream of one partition.
func shop(fn runnel.ProcessFunc[order]) func(*runnel.Options) *runnel.App {
	return func(o *runnel.Options) *runnel.App {
		app := runnel.New("shop", o)
		orders := runnel.NewStream(app, "orders", customer, &runnel.StreamOptions{Partitions: 1})
		orders.Process("p", fn, &runnel.ProcessorOptions{Lease: 2 * time.Second})
		return app
	}
}

// sender declares the stream of shop for sending.
func sender(t *testing.T, c *runneltest.Cluster) (send func(amounts ...int), closeApp func()) {
	app := runnel.New("shop", c.Options("sender"))
	orders := runnel.NewStream(app, "orders", customer, &runnel.StreamOptions{Partitions: 1})
	return func(amounts ...int) {
		t.Helper()
		for _, n := range amounts {
			if err := orders.Send(c.Context(), order{"ada", n}); err != nil {
				t.Fatal(err)
			}
		}
	}, func() { app.Close() }
}

func TestSimOfOneWorker(t *testing.T) {
	var j journal
	runneltest.Sim(t, shop(runnel.Each(func(ctx context.Context, _ *runnel.Event, o order) error {
		time.Sleep(time.Minute)
		j.note(ctx, o)
		return nil
	})), func(c *runneltest.Cluster) {
		send, end := sender(t, c)
		defer end()
		send(1, 2, 3)
		began := time.Now()
		w := c.Start("a")
		c.Wait(func() bool { return w.App().Ready() == nil })
		c.Wait(func() bool { return j.len() == 3 })
		if d := time.Since(began); d < 3*time.Minute || d > 3*time.Minute+time.Second {
			t.Errorf("took %v", d)
		}
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
	})
	if want := []string{"a 1", "a 2", "a 3"}; !slices.Equal(j.done, want) {
		t.Errorf("processed %v, want %v", j.done, want)
	}
}

func TestSimKill(t *testing.T) {
	var j journal
	runneltest.Sim(t, shop(runnel.Each(func(ctx context.Context, _ *runnel.Event, o order) error {
		time.Sleep(100 * time.Millisecond)
		if err := runneltest.Gate(ctx); err != nil {
			return err
		}
		j.note(ctx, o)
		return nil
	})), func(c *runneltest.Cluster) {
		send, end := sender(t, c)
		defer end()
		a := c.Start("a")
		c.Wait(func() bool { return a.App().Ready() == nil })
		c.Start("b")
		c.Sleep(time.Second)
		send(1, 2, 3)
		c.Wait(func() bool { return j.len() == 1 })
		c.Sleep(50 * time.Millisecond) // in the middle of the second
		a.Kill()
		killed := time.Now()
		c.Wait(func() bool { return j.len() == 3 })
		if d := time.Since(killed); d > 3*time.Second {
			t.Errorf("took over after %v with an expiry of 2 s", d)
		}
		<-a.Done()
	})
	if want := []string{"a 1", "b 2", "b 3"}; !slices.Equal(j.done, want) {
		t.Errorf("processed %v, want %v", j.done, want)
	}
}

func TestSimFreezeAndCut(t *testing.T) {
	var j journal
	runneltest.Sim(t, shop(runnel.Each(func(ctx context.Context, _ *runnel.Event, o order) error {
		if err := runneltest.Gate(ctx); err != nil {
			return err
		}
		j.note(ctx, o)
		return nil
	})), func(c *runneltest.Cluster) {
		send, end := sender(t, c)
		defer end()
		a := c.Start("a")
		c.Wait(func() bool { return a.App().Ready() == nil })
		a.Cut()
		send(1)
		c.Wait(func() bool { return j.len() == 1 })
		a.Freeze(500 * time.Millisecond) // less than the expiry
		send(2)
		c.Sleep(400 * time.Millisecond)
		if j.len() != 1 {
			t.Error("a frozen worker processed an event")
		}
		c.Wait(func() bool { return j.len() == 2 })
		c.Sleep(50 * time.Millisecond) // both are acknowledged
		a.Freeze(time.Minute)          // more than that
		c.Start("b")
		c.Sleep(10 * time.Second)
		send(3)
		c.Sleep(time.Second)
		if j.len() != 3 {
			t.Errorf("no takeover: %d processed", j.len())
		}
	})
	if want := []string{"a 1", "a 2", "b 3"}; !slices.Equal(j.done, want) {
		t.Errorf("processed %v, want %v", j.done, want)
	}
}

func TestSimIsolate(t *testing.T) {
	var j journal
	runneltest.Sim(t, shop(runnel.Each(func(ctx context.Context, _ *runnel.Event, o order) error {
		if err := runneltest.Gate(ctx); err != nil {
			return err
		}
		j.note(ctx, o)
		if j.len() == 1 {
			runneltest.WorkerOf(ctx).Isolate(time.Minute)
		}
		return nil
	})), func(c *runneltest.Cluster) {
		send, end := sender(t, c)
		defer end()
		a := c.Start("a")
		c.Wait(func() bool { return a.App().Ready() == nil })
		c.Start("b")
		c.Sleep(time.Second)
		send(1) // it is done, and the ack does not get through
		c.Wait(func() bool { return j.len() == 2 })
		c.Sleep(2 * time.Minute)
	})
	if want := []string{"a 1", "b 1"}; !slices.Equal(j.done, want) {
		t.Errorf("processed %v, want %v", j.done, want)
	}
}

func TestSimReportsAWorkerThatHalts(t *testing.T) {
	var w *runneltest.Worker
	runneltest.Sim(t, shop(runnel.Each(func(context.Context, *runnel.Event, order) error { return errRefund })), func(c *runneltest.Cluster) {
		send, end := sender(t, c)
		defer end()
		w = c.Start("a")
		send(1)
		<-w.Done()
		if err := w.Err(); !errors.Is(err, errRefund) {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestSimLatency(t *testing.T) {
	starts := func(latency time.Duration) (took time.Duration) {
		runneltest.Sim(t, shop(runnel.Each(func(context.Context, *runnel.Event, order) error { return nil })), func(c *runneltest.Cluster) {
			c.Latency(latency)
			began := time.Now()
			w := c.Start("a")
			c.Wait(func() bool { return w.App().Ready() == nil })
			took = time.Since(began)
		})
		return took
	}
	if fast, slow := starts(0), starts(100*time.Millisecond); fast > 100*time.Millisecond || slow < 200*time.Millisecond {
		t.Errorf("ready after %v without latency and %v with", fast, slow)
	}
}
