// Partitions change hands within the promised times: when a lease expires after a kill, at once
// otherwise, and the partitions that stay are not stopped.

package runnel_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/runneltest"
)

// flow is what processes a steady flow of events, one key per partition, and
// the longest pause between two iterations of each partition.
type flow struct {
	t    *testing.T
	c    *runneltest.Cluster
	send func(numbers ...int)
	keys []int

	mu      sync.Mutex
	last    map[int]time.Time
	owner   map[int]string
	pause   map[int]time.Duration
	seen    map[string]bool
	repeats int
}

// flowing simulates workers of an app with so many partitions.
func flowing(t *testing.T, partitions int, opts *runnel.ProcessorOptions, run func(f *flow)) {
	t.Helper()
	f := &flow{t: t, last: map[int]time.Time{}, owner: map[int]string{}, pause: map[int]time.Duration{}, seen: map[string]bool{}}
	for p := range partitions {
		n := 0
		for runnel.XXHash.Func(fmt.Sprint(n), partitions) != p {
			n++
		}
		f.keys = append(f.keys, n)
	}
	fn := runnel.Each(func(ctx context.Context, e *runnel.Event, _ item) error {
		if err := runneltest.Gate(ctx); err != nil {
			return err
		}
		f.note(e, runneltest.WorkerOf(ctx).Name())
		return nil
	})
	cluster(t, partitions, fn, opts, func(c *runneltest.Cluster, send func(...int)) {
		f.c, f.send = c, send
		run(f)
	})
}

func (f *flow) note(e *runnel.Event, worker string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, id := time.Now(), fmt.Sprint(e.Partition, " ", e.ID)
	if f.seen[id] {
		f.repeats++
	}
	f.seen[id] = true
	if last, ok := f.last[e.Partition]; ok {
		f.pause[e.Partition] = max(f.pause[e.Partition], now.Sub(last))
	}
	f.last[e.Partition], f.owner[e.Partition] = now, worker
}

// owners are who processed each partition last, and forgets all pauses.
func (f *flow) owners() map[int]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[int]string{}
	for p, w := range f.owner {
		out[p] = w
	}
	clear(f.pause)
	return out
}

// run sends an event to each partition once per pace, for d.
func (f *flow) run(pace, d time.Duration) {
	f.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); f.c.Sleep(pace) {
		f.send(f.keys...)
	}
}

// paused returns the longest pause of the partitions that moved and of those
// that stayed, and how many moved.
func (f *flow) paused(before map[int]string) (moved int, movedFor, stayedFor time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for p, w := range before {
		if f.owner[p] != w {
			moved++
			movedFor = max(movedFor, f.pause[p])
		} else {
			stayedFor = max(stayedFor, f.pause[p])
		}
	}
	return moved, movedFor, stayedFor
}

// An owner is killed at the default expiry: its partitions process again within
// expiry and a second, and the others do not notice.
func TestAKilledOwnerIsReplacedWithinExpiryAndASecond(t *testing.T) {
	t.Parallel()
	const pace = 50 * time.Millisecond
	flowing(t, 16, nil, func(f *flow) {
		a := ready(f.c, "a")
		ready(f.c, "b")
		f.run(pace, 15*time.Second)
		before := f.owners()
		a.Kill()
		f.run(pace, 12*time.Second)
		moved, gap, stayed := f.paused(before)
		if moved != 8 || gap > 11*time.Second || stayed > pace+50*time.Millisecond {
			t.Errorf("%d partitions moved, after %v at most; the others paused for %v", moved, gap, stayed)
		}
	})
}

// An owner is asked to stop: others go on with its partitions within 200 ms, and
// nothing is processed twice.
func TestAStoppedOwnerIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	const pace = 10 * time.Millisecond
	flowing(t, 16, nil, func(f *flow) {
		a := ready(f.c, "a")
		ready(f.c, "b")
		f.run(pace, time.Second)
		before := f.owners()
		stopped := make(chan error, 1)
		go func() { stopped <- a.Stop() }()
		f.run(pace, 3*time.Second)
		if err := <-stopped; err != nil {
			t.Errorf("Run: %v", err)
		}
		moved, gap, stayed := f.paused(before)
		if moved != 8 || gap > 200*time.Millisecond || stayed > 50*time.Millisecond || f.repeats > 0 {
			t.Errorf("%d partitions moved, after %v at most; the others paused for %v; %d repeats", moved, gap, stayed, f.repeats)
		}
	})
}

// The N+1st worker moves at most a fair share, and the others do not pause.
func TestAJoinMovesAShareAndStopsNoOther(t *testing.T) {
	t.Parallel()
	tier.Sequential(t)
	const pace = 10 * time.Millisecond
	flowing(t, 16, nil, func(f *flow) {
		for workers, share := range []int{0, 8, 6, 4} { // ceil(16/(N+1))
			name := fmt.Sprint("w", workers)
			if workers == 0 {
				ready(f.c, name)
				f.run(pace, time.Second)
				continue
			}
			before := f.owners()
			joined := f.c.Start(name)
			f.run(pace, 3*time.Second)
			if err := joined.App().Ready(); err != nil {
				t.Fatal(err)
			}
			moved, _, stayed := f.paused(before)
			if moved == 0 || moved > share || stayed > 50*time.Millisecond || f.repeats > 0 {
				t.Errorf("worker %d: %d partitions moved, want up to %d; the others paused for %v; %d repeats", workers+1, moved, share, stayed, f.repeats)
			}
		}
	})
}

func TestManyExecutorsSettleWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	tier.Slow(t)
	const executors = 16
	partitions := executors * tier.Large(16) // make unraced has them all
	cluster(t, partitions, ignoreAll, nil, func(c *runneltest.Cluster, _ func(...int)) {
		c.Latency(time.Millisecond)
		began := time.Now()
		for n := range executors {
			c.Start(fmt.Sprint("w", n))
		}
		var locks []string
		for p := range partitions {
			locks = append(locks, fmt.Sprint("__lock:contract.items.p.", p))
		}
		c.Wait(func() bool {
			shares := map[string]int{}
			for _, value := range c.Redis().MGet(c.Context(), locks...).Val() {
				if value, held := value.(string); held {
					shares[value[:store.ExecutorIDLength]]++
				}
			}
			for _, n := range shares {
				if n != partitions/executors {
					return false
				}
			}
			return len(shares) == executors
		})
		d := time.Since(began)
		t.Logf("settled after %v of fake time", d)
		if d > 5*time.Second {
			t.Errorf("settled after %v", d)
		}
	})
}

// What an operator does by hand, or Redis forgets, stops a partition for less
// than five seconds.
func TestWorkersResumeWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	tier.Sequential(t)
	const pace = 50 * time.Millisecond
	for name, hurt := range map[string]func(f *flow, workers []*runneltest.Worker){
		"FLUSHALL":     func(f *flow, _ []*runneltest.Worker) { f.c.Redis().FlushAll(f.c.Context()) },
		"SCRIPT FLUSH": func(f *flow, _ []*runneltest.Worker) { f.c.Redis().ScriptFlush(f.c.Context()) },
		"XGROUP DESTROY": func(f *flow, _ []*runneltest.Worker) {
			for p := range 16 {
				key := fmt.Sprint("__strm:contract.items.", p)
				for _, g := range f.c.Redis().XInfoGroups(f.c.Context(), key).Val() {
					f.c.Redis().XGroupDestroy(f.c.Context(), key, g.Name)
				}
			}
		},
		"cut connections": func(f *flow, workers []*runneltest.Worker) {
			for _, w := range workers {
				w.Cut()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			flowing(t, 16, nil, func(f *flow) {
				workers := []*runneltest.Worker{ready(f.c, "a"), ready(f.c, "b")}
				f.run(pace, 3*time.Second)
				f.owners()
				hurt(f, workers)
				f.run(pace, 7*time.Second)
				f.mu.Lock()
				defer f.mu.Unlock()
				for p, d := range f.pause {
					if d > 5*time.Second {
						t.Errorf("partition %d paused for %v", p, d)
					}
				}
				for p, at := range f.last {
					if d := time.Since(at); d > time.Second {
						t.Errorf("partition %d has not gone on for %v", p, d)
					}
				}
			})
		})
	}
}
