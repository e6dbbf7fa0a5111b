// An event that may have ended its worker runs alone at first; where it hangs, fails or waits,
// other partitions go on.

package runnel_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/runneltest"
)

// A killed is a cluster of two partitions whose first worker died with an event of
// each in progress. It notes what the second one begins, "<partition> <N>".
type killed struct {
	*runneltest.Cluster
	rules *admin.Client
	n     notes
}

// inKilled runs fn in fake time. start reports whether the function gets as far as its
// loop, begin what becomes of an event of the second worker.
func inKilled(t *testing.T, opts *runnel.ProcessorOptions, start func() error, begin func(c *killed, e *runnel.Event) error, fn func(c *killed)) {
	k := &killed{}
	process := func(ctx context.Context, events *runnel.Events[item]) error {
		if err := start(); err != nil {
			return err
		}
		for e, i := range events.All() {
			for runneltest.WorkerOf(ctx).Name() == "a" {
				time.Sleep(100 * time.Millisecond)
				if err := runneltest.Gate(ctx); err != nil {
					<-ctx.Done() // the dead report nothing
					return err
				}
			}
			k.n.add(fmt.Sprint(e.Partition, " ", i.N))
			if err := begin(k, e); err != nil {
				return err
			}
		}
		return nil
	}
	simulate(t, nil, &runnel.StreamOptions{Partitions: 2}, process, opts, func(c *simulated) {
		k.Cluster, k.rules = c.Cluster, admin.New(c.app)
		a := ready(c.Cluster, "a")
		c.send(1, 2, 3, 4, 5, 6, 7, 8)
		c.Sleep(time.Second)
		a.Kill()
		ready(c.Cluster, "b")
		fn(k)
	})
}

// begun counts what was begun of a partition.
func (k *killed) begun(partition int) (n int) {
	for _, line := range k.n.all() {
		if line[:1] == fmt.Sprint(partition) {
			n++
		}
	}
	return n
}

// A partition that is quarantined right behind an event that ran alone does not
// keep the others from their turn.
func TestAQuarantineLetsOthersRunAlone(t *testing.T) {
	t.Parallel()
	for _, policy := range []runnel.Policy{runnel.Quarantine, runnel.Ignore} {
		t.Run(policy.String(), func(t *testing.T) {
			var broken atomic.Bool
			opts := retrying(9, runnel.OrderPartition)
			opts.OnError, opts.Lease = policy, time.Second
			inKilled(t, opts, func() error {
				if broken.Load() {
					return errBad
				}
				return nil
			}, func(k *killed, e *runnel.Event) error {
				if !broken.Swap(true) {
					return runnel.RetryAfter(errBad, time.Hour)
				}
				return nil
			}, func(k *killed) {
				k.Sleep(20 * time.Second)
				if k.begun(0) == 0 || k.begun(1) == 0 {
					t.Errorf("begun: %q, want some of both partitions", k.n.all())
				}
			})
		})
	}
}

// A function that hangs holds up no other partition for longer than Lease, though a
// worker that died was at events of both; and at no attempt but the last one does it
// hold up events that are not the first in progress.
func TestAFunctionThatHangsStopsItsPartitionAlone(t *testing.T) {
	t.Parallel()
	for _, most := range []int{2, 9} {
		for _, order := range []runnel.RetryOrder{runnel.OrderPartition, runnel.OrderKey} {
			t.Run(fmt.Sprint(order, " Max ", most), func(t *testing.T) {
				opts := retrying(most, order)
				opts.Lease, opts.Timeout = 5*time.Second, 500*time.Millisecond
				inKilled(t, opts, func() error { return nil }, func(k *killed, e *runnel.Event) error {
					if len(k.n.all()) == 1 {
						time.Sleep(time.Minute)
					}
					return nil
				}, func(k *killed) {
					k.Wait(func() bool { return len(k.n.all()) > 0 })
					began, hung := time.Now(), 0
					if k.begun(1) > 0 {
						hung = 1
					}
					k.Wait(func() bool { return k.begun(1-hung) > 0 || time.Since(began) > 50*time.Second })
					took, bound := time.Since(began), 6*time.Second
					if order == runnel.OrderKey && most > 2 {
						bound = 2 * time.Second // but for the suspect of that partition
					}
					if took > bound {
						t.Errorf("the other partition began after %v, want %v at most; begun: %q", took, bound, k.n.all())
					}
					k.Sleep(2 * time.Minute)
					if begun := k.n.all(); len(begun) != 8 || len(slices.Compact(slices.Sorted(slices.Values(begun)))) != 8 {
						t.Errorf("begun: %q, want each once", k.n.all())
					}
				})
			})
		}
	}
}

// So does one that is paused while it waits for its turn.
func TestAPauseOfOneThatWaitsToRunAloneHoldsUpNoOther(t *testing.T) {
	opts := retrying(9, runnel.OrderPartition)
	opts.Lease = 10 * time.Second
	inKilled(t, opts, func() error { return nil }, func(k *killed, e *runnel.Event) error {
		if len(k.n.all()) == 1 {
			time.Sleep(20 * time.Second)
		}
		return nil
	}, func(k *killed) {
		k.Wait(func() bool { return len(k.n.all()) > 0 })
		k.Sleep(3 * time.Second)
		first := 0
		if k.begun(1) > 0 {
			first = 1
		}
		if err := k.rules.Pause(k.Context(), admin.PartitionScope("items", "p", 1-first), nil); err != nil {
			t.Fatal(err)
		}
		k.Sleep(time.Minute)
		pending, err := k.Redis().XInfoGroups(k.Context(), fmt.Sprint("__strm:contract.items.", first)).Result()
		if err != nil || pending[0].Pending != 0 {
			t.Errorf("%+v, %v; begun: %q, want all of partition %d", pending, err, k.n.all(), first)
		}
		if k.begun(1-first) > 0 {
			t.Errorf("begun: %q, though partition %d is paused", k.n.all(), 1-first)
		}
	})
}
