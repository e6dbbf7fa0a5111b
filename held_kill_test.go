// A commit that waits for room is of events that were processed: what ends workers meanwhile is not blamed on these.

package runnel_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

// waitsForRoom is an app whose outputs have no room until makeRoom.
type waitsForRoom struct {
	*runneltest.Cluster
	t       *testing.T
	n       notes
	process func(ctx context.Context, i item) error
	quiet   int  // emits nothing
	expire  bool // a row of item 1 ends, which alone emits
	opts    runnel.ProcessorOptions

	app   *runnel.App // the sender's
	items *runnel.Stream[item]
	sums  *runnel.Stream[sum]
	table *runnel.Table[sum]
}

func (h *waitsForRoom) declare(o *runnel.Options) *waitsForRoom {
	one := &waitsForRoom{app: runnel.New("contract", o)}
	one.items = runnel.NewStream(one.app, "items", mod10, &runnel.StreamOptions{Partitions: 1})
	one.sums = runnel.NewStream(one.app, "sums", func(sum) string { return "0" }, &runnel.StreamOptions{Partitions: 1, MaxLen: 1})
	one.table = runnel.NewTable[sum](one.items, "sums", nil)
	opts := h.opts
	opts.Tables, opts.Lease = []runnel.State{one.table}, 3*time.Second
	var due *runnel.Table[sum]
	if h.expire {
		due = runnel.NewTable[sum](one.items, "due", &runnel.TableOptions{TTL: 10 * time.Second})
		due.OnExpire(func(ctx context.Context, _ string, v sum) error { return one.sums.Emit(ctx, v) })
		opts.Tables = append(opts.Tables, due)
	}
	one.items.Process("p", runnel.Each(func(ctx context.Context, e *runnel.Event, i item) error {
		h.n.add(attempt(ctx, e, i))
		if err := h.process(ctx, i); err != nil {
			return err
		}
		row := one.table.Rows(ctx).Update(mod10(i), func(row sum) sum { return sum{row.Total + i.N, row.Times + 1} })
		switch {
		case !h.expire && i.N != h.quiet:
			return one.sums.Emit(ctx, row)
		case h.expire && i.N == 1:
			due.Rows(ctx).Set("1", row)
		}
		return nil
	}), &opts)
	return one
}

// play plays script once the stream that is emitted to is full.
func (h *waitsForRoom) play(script func()) {
	runneltest.Sim(h.t, func(o *runnel.Options) *runnel.App { return h.declare(o).app }, func(c *runneltest.Cluster) {
		sender := h.declare(c.Options("sender"))
		h.Cluster, h.app, h.items, h.sums, h.table = c, sender.app, sender.items, sender.sums, sender.table
		defer h.app.Close()
		if err := h.sums.Send(c.Context(), sum{}); err != nil {
			h.t.Fatal(err)
		}
		script()
	})
}

func (h *waitsForRoom) send(numbers ...int) {
	if err := h.items.Send(h.Context(), items(numbers...)...); err != nil {
		h.t.Fatal(err)
	}
	h.Sleep(time.Minute)
}

// makeRoom makes room for one more.
func (h *waitsForRoom) makeRoom() {
	h.Redis().XTrimMaxLen(h.Context(), "__strm:contract.sums.0", 0)
}

// counts checks that an item counts once.
func (h *waitsForRoom) counts(n int) {
	h.Sleep(time.Minute)
	row, _, err := h.table.Get(h.Context(), mod10(item{n}))
	if err != nil || (row != sum{n, 1}) {
		h.t.Errorf("%q came to %v, %v, with %d dead letters", h.n.all(), row, err, h.Redis().XLen(h.Context(), "__dead:contract.items.p.0").Val())
	}
}

func (h *waitsForRoom) deaths() int {
	n, _ := h.Redis().HGet(h.Context(), "__own:contract.items.p.0", "deaths").Int()
	return n
}

var twice = &runnel.Retry{Max: 2, MinBackoff: time.Second, MaxBackoff: time.Second, Order: runnel.OrderKey}

func TestACrashWhileACommitWaitsIsNotTheEventsDoing(t *testing.T) {
	for way, opts := range map[string]runnel.ProcessorOptions{"retry": {Retry: twice}, "parked": {Retry: twice}, "ignored": {OnError: runnel.Ignore}} {
		t.Run(way, func(t *testing.T) {
			h := &waitsForRoom{t: t, opts: opts}
			h.process = func(context.Context, item) error {
				if way == "parked" && len(h.n.all()) == 1 {
					return errBad
				}
				return nil
			}
			h.play(func() {
				w := h.Start("w0")
				h.send(1)
				for k := range 4 {
					w.Kill()
					w = h.Start(fmt.Sprint("w", k+1))
					h.Sleep(time.Minute)
				}
				h.makeRoom()
				h.counts(1)
			})
		})
	}
}

// A parked event has been processed, and its commit stands behind another one that waits.
func TestACrashIsNotTheDoingOfAParkedEventBehindACommitThatWaits(t *testing.T) {
	var failed atomic.Bool
	h := &waitsForRoom{t: t, quiet: 1, opts: runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 2, MinBackoff: 10 * time.Second, MaxBackoff: 10 * time.Second, Order: runnel.OrderKey}}}
	h.process = func(_ context.Context, i item) error {
		if i.N == 1 && failed.CompareAndSwap(false, true) {
			return errBad
		}
		return nil
	}
	h.play(func() {
		w := h.Start("w0")
		h.Sleep(5 * time.Second)
		h.send(1, 2)
		for k := range 2 { // the commit of 2 waits, then that of 3
			w.Kill()
			h.makeRoom()
			w = h.Start(fmt.Sprint("w", k+1))
			for h.Redis().XLen(h.Context(), "__strm:contract.sums.0").Val() == 0 {
				h.Sleep(10 * time.Millisecond)
			}
			h.send(3 + k)
		}
		h.counts(1)
	})
}

// The end of a row waits in front of it.
func TestASuspectBehindAnEndThatWaitsHasSurvived(t *testing.T) {
	for _, policy := range []runnel.Policy{runnel.Ignore, runnel.Quarantine} {
		t.Run(fmt.Sprint(policy), func(t *testing.T) {
			h := &waitsForRoom{t: t, expire: true, opts: runnel.ProcessorOptions{OnError: policy}}
			h.process = func(context.Context, item) error { return nil }
			h.play(func() {
				w := h.Start("w0")
				h.send(1)
				h.send(2)
				for k := range 5 {
					w.Kill()
					w = h.Start(fmt.Sprint("w", k+1))
					h.Sleep(time.Minute)
				}
				if n := h.deaths(); n > 1 {
					t.Errorf("%d deaths count as its doing", n)
				}
				h.makeRoom()
				h.counts(2)
			})
		})
	}
}

// An event that ends its workers does so twice, and not for ever, while the commit of the one before it waits.
func TestADeadlyEventBehindACommitThatWaits(t *testing.T) {
	for way, opts := range map[string]runnel.ProcessorOptions{"retry": {Retry: twice}, "ignored": {OnError: runnel.Ignore}} {
		t.Run(way, func(t *testing.T) {
			h := &waitsForRoom{t: t, opts: opts}
			h.process = func(ctx context.Context, i item) error {
				if i.N == 2 {
					time.Sleep(time.Second)
					runneltest.WorkerOf(ctx).Kill()
					return runneltest.Gate(ctx)
				}
				return nil
			}
			h.play(func() {
				died := 0
				round := func() {
					w := h.Start(fmt.Sprint("w", len(h.n.all())))
					h.Sleep(time.Minute)
					select {
					case <-w.Done():
						died++
					default:
						w.Kill()
					}
				}
				h.send(1, 2, 3)
				for range 8 {
					round()
				}
				if died > 2 {
					t.Errorf("%d workers died", died)
				}
				for range 8 {
					h.makeRoom()
					round()
				}
				h.counts(1)
				h.counts(3)
			})
		})
	}
}
