package runneltest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/runneltest"
)

// A held is an app whose rows of "due" end after 10 s, by what a test has said, and those of "info" after 20 s.
type held struct {
	t    *testing.T
	opts runnel.ProcessorOptions

	mu     sync.Mutex
	app    *runnel.App
	orders *runnel.Stream[order]
	end    func(ctx context.Context) error
	saw    []string
}

func (h *held) build(o *runnel.Options) *runnel.App {
	app := runnel.New("sim", o)
	orders := runnel.NewStream(app, "orders", func(o order) string { return o.Customer }, &runnel.StreamOptions{Partitions: 1})
	due := runnel.NewTable[int](orders, "due", &runnel.TableOptions{TTL: 10 * time.Second})
	info := runnel.NewTable[int](orders, "info", &runnel.TableOptions{TTL: 20 * time.Second})
	due.OnExpire(func(ctx context.Context, key string, sum int) error {
		h.mu.Lock()
		end := h.end
		h.mu.Unlock()
		if err := end(ctx); err != nil {
			return err
		}
		n, _ := info.Rows(ctx).Get(key)
		h.note(fmt.Sprint("end ", key, sum, " with ", n))
		return nil
	})
	opts := h.opts
	opts.Tables = []runnel.State{due, info}
	orders.Process("p", runnel.Each(func(ctx context.Context, e *runnel.Event, o order) error {
		if err := runneltest.Gate(ctx); err != nil {
			return err
		}
		h.note(fmt.Sprint(o.Customer, o.Amount))
		due.Rows(ctx).Set(o.Customer, o.Amount)
		info.Rows(ctx).Set(o.Customer, o.Amount)
		return nil
	}), &opts)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.app, h.orders = app, orders
	return app
}

func (h *held) note(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.saw = append(h.saw, line)
}

// ends sets what the function does at the next ends.
func (h *held) ends(end func(ctx context.Context) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.end = end
}

func (h *held) send(c *runneltest.Cluster, all ...order) {
	h.t.Helper()
	h.mu.Lock()
	orders := h.orders
	h.mu.Unlock()
	if err := orders.Send(c.Context(), all...); err != nil {
		h.t.Error(err)
	}
}

func (h *held) want(want ...string) {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.saw, want) {
		h.t.Errorf("saw %q, want %q", h.saw, want)
	}
}

func fine(context.Context) error { return nil }

// What the function for an end may see stays as long as that end is held up.
func TestRowsStayForAnEndThatIsHeldUp(t *testing.T) {
	h := &held{t: t, opts: runnel.ProcessorOptions{OnError: runnel.Quarantine}, end: func(context.Context) error { return errors.New("no") }}
	runneltest.Sim(t, h.build, func(c *runneltest.Cluster) {
		w := c.Start("a")
		c.Wait(func() bool { return w.App().Ready() == nil })
		h.send(c, order{"ada", 7})
		c.Sleep(10 * time.Minute)
		h.ends(fine)
		if _, err := admin.New(h.app).Release(c.Context(), "orders", "p", 0, false); err != nil {
			t.Error(err)
		}
		c.Sleep(10 * time.Second)
		h.want("ada7", "end ada7 with 7")
	})
}

// A function that ends its goroutine at the end of a row has not returned: the row has not ended.
func TestAnEndWithoutAReturnIsNone(t *testing.T) {
	h := &held{t: t, end: func(context.Context) error { runtime.Goexit(); return nil }}
	runneltest.Sim(t, h.build, func(c *runneltest.Cluster) {
		w := c.Start("a")
		c.Wait(func() bool { return w.App().Ready() == nil })
		h.send(c, order{"ada", 7})
		if <-w.Done(); w.Err() == nil {
			t.Error("the worker has not halted")
		}
		h.ends(fine)
		c.Start("b")
		c.Sleep(10 * time.Second)
		h.want("ada7", "end ada7 with 7")
	})
}

// Workers end at the end of a row: an event that waits behind it is not to blame.
func TestDeathsAtAnEndAreNoEventsDoing(t *testing.T) {
	for _, opts := range []runnel.ProcessorOptions{
		{OnError: runnel.Ignore}, {OnError: runnel.Quarantine}, {Retry: &runnel.Retry{Max: 3, Order: runnel.OrderKey, MinBackoff: time.Second}},
	} {
		h := &held{t: t, opts: opts, end: func(ctx context.Context) error {
			runneltest.WorkerOf(ctx).Kill()
			<-ctx.Done()
			return context.Cause(ctx)
		}}
		runneltest.Sim(t, h.build, func(c *runneltest.Cluster) {
			w := c.Start("w")
			c.Wait(func() bool { return w.App().Ready() == nil })
			h.send(c, order{"ada", 7})
			<-w.Done()
			h.build(c.Options("producer"))
			h.send(c, order{"bob", 1}, order{"bob", 2})
			for n := range 8 {
				<-c.Start(fmt.Sprint("w", n)).Done()
			}
			h.ends(fine)
			c.Start("last")
			c.Sleep(5 * time.Minute)
			h.want("ada7", "end ada7 with 7", "bob1", "bob2", "end bob2 with 2")
		})
	}
}
