// An event that an earlier ownership may have begun says so, however that has ended.

package runnel_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

// again takes down which items came again, and whether they said so.
type again struct {
	t     *testing.T
	mu    sync.Mutex
	seen  map[int]bool
	times int // of items that came again
	batch func(ctx context.Context, es []*runnel.Event, is []item) error
}

func (a *again) process(ctx context.Context, es []*runnel.Event, is []item) error {
	a.mu.Lock()
	for n, i := range is {
		if a.seen[i.N] {
			a.times++
			if !es[n].Redelivered {
				a.t.Errorf("%d came again, and is not redelivered", i.N)
			}
		}
		a.seen[i.N] = true
	}
	a.mu.Unlock()
	return a.batch(ctx, es, is)
}

func (a *again) repeats() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.times
}

func (a *again) saw() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.seen)
}

// comesAgain runs a worker "a" over 20 items in batches of at most so many, and more as a case has it.
func comesAgain(t *testing.T, batch int, opts *runnel.ProcessorOptions, fn func(ctx context.Context, es []*runnel.Event, is []item) error,
	run func(c *simulated, a *again, w *runneltest.Worker)) {
	a := &again{t: t, seen: map[int]bool{}, batch: fn}
	simulate(t, nil, nil, runnel.EachBatch(batch, 100*time.Millisecond, a.process), opts, func(c *simulated) {
		w := ready(c.Cluster, "a")
		c.append(1, 20)
		run(c, a, w)
	})
}

// A worker dies in an iteration of more events than it reads ahead.
func TestALargeIterationOfADeadWorkerIsRedelivered(t *testing.T) {
	fn := func(ctx context.Context, _ []*runnel.Event, _ []item) error {
		if runneltest.WorkerOf(ctx).Name() == "a" {
			time.Sleep(time.Minute)
		}
		return runneltest.Gate(ctx)
	}
	comesAgain(t, 20, &runnel.ProcessorOptions{Prefetch: 2}, fn, func(c *simulated, a *again, w *runneltest.Worker) {
		c.Wait(func() bool { return a.saw() == 20 })
		w.Kill()
		ready(c.Cluster, "b")
		c.Sleep(2 * time.Minute)
		if n := a.repeats(); n < 20 {
			t.Errorf("%d came again, want all", n)
		}
	})
}

// The function fails in a batch, and its worker stops with that, or leaves the partition to another one.
func TestWhatFailedIsRedelivered(t *testing.T) {
	for _, policy := range []runnel.Policy{runnel.Halt, runnel.Quarantine} {
		t.Run(policy.String(), func(t *testing.T) {
			fn := func(ctx context.Context, es []*runnel.Event, is []item) error {
				if is[0].N == 1 && runneltest.WorkerOf(ctx).Name() == "a" {
					return runnel.FailedEvents(errBad, es[2])
				}
				return nil
			}
			comesAgain(t, 5, &runnel.ProcessorOptions{OnError: policy}, fn, func(c *simulated, a *again, w *runneltest.Worker) {
				c.Sleep(time.Second)
				_ = w.Stop() // with the error, under Halt
				o := operator(t, c.Cluster)
				defer o.Close()
				ready(c.Cluster, "b")
				if policy == runnel.Quarantine {
					_, _, err := o.ReleaseQuarantine(c.Context(), o.Partition("items", "p", 0), false)
					c.must(err)
				}
				c.Sleep(time.Minute)
				if a.saw() != 20 || a.repeats() == 0 {
					t.Errorf("%d came, %d of them again", a.saw(), a.repeats())
				}
			})
		})
	}
}

// Redis forgets the last commits, or what it knows of the owner: the owner takes the partition over again, and blames
// no event for that.
func TestAnOwnerThatRedisForgetsGoesOn(t *testing.T) {
	const own = "__own:contract.items.p.0"
	for name, forget := range map[string]func(c *simulated){
		"commits":   func(c *simulated) { c.must(c.Redis().HSet(c.Context(), own, "commit", 0).Err()) },
		"ownership": func(c *simulated) { c.must(c.Redis().Del(c.Context(), own).Err()) },
	} {
		t.Run(name, func(t *testing.T) {
			fn := func(context.Context, []*runnel.Event, []item) error { return nil }
			comesAgain(t, 5, nil, fn, func(c *simulated, a *again, _ *runneltest.Worker) {
				c.Wait(func() bool { return a.saw() == 20 })
				for n := 21; n < 30; n += 3 {
					c.Sleep(time.Second)
					forget(c)
					c.append(n, n+2)
					c.Sleep(20 * time.Second)
					if got := a.saw(); got != n+2 {
						t.Fatalf("%d came of %d", got, n+2)
					}
					if s := c.Redis().HGet(c.Context(), own, "suspect").Val(); s != "" {
						t.Errorf("%s is suspected", s)
					}
				}
				if got := fmt.Sprint(c.Redis().XInfoGroups(c.Context(), "__strm:contract.items.0").Val()[0].Pending); got != "0" {
					t.Errorf("%s are pending", got)
				}
			})
		})
	}
}
