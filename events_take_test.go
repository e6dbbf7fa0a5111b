// Take yields as many events as are asked for, or what there is after a time.

package runnel_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

// batches notes the batches of Take and when they were yielded.
type batches struct {
	mu    sync.Mutex
	began time.Time
	got   [][]int
	at    []time.Duration
}

func (b *batches) note(is []item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var numbers []int
	for _, i := range is {
		numbers = append(numbers, i.N)
	}
	b.got, b.at = append(b.got, numbers), append(b.at, time.Since(b.began))
}

func (b *batches) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.got)
}

// taking runs a worker whose function takes batches.
func taking(t *testing.T, n int, within time.Duration, opts *runnel.ProcessorOptions,
	run func(c *runneltest.Cluster, b *batches, send func(...int))) {
	t.Helper()
	b := new(batches)
	cluster(t, 1, func(_ context.Context, ev *runnel.Events[item]) error {
		for is := range ev.Take(n, within).Records() {
			b.note(is)
		}
		return nil
	}, opts, func(c *runneltest.Cluster, send func(...int)) {
		ready(c, "a")
		b.began = time.Now()
		run(c, b, send)
	})
}

func (b *batches) want(t *testing.T, got [][]int, at ...time.Duration) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if fmt.Sprint(b.got) != fmt.Sprint(got) {
		t.Errorf("yielded %v, want %v", b.got, got)
		return
	}
	for i := range at {
		if !near(b.at[i], at[i]) {
			t.Errorf("batch %d yielded after %v, want %v", i+1, b.at[i], at[i])
		}
	}
}

func TestTakeYieldsNEvents(t *testing.T) {
	taking(t, 3, time.Hour, nil, func(c *runneltest.Cluster, b *batches, send func(...int)) {
		send(1, 2, 3, 4, 5, 6, 7)
		c.Sleep(time.Minute)
		b.want(t, [][]int{{1, 2, 3}, {4, 5, 6}}, 0, 0) // 7 waits for its hour
		send(8, 9)
		c.Sleep(time.Second)
		b.want(t, [][]int{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}, 0, 0, time.Minute)
	})
}

// Within counts from the arrival of the batch's first event, neither from the
// batch before nor from when the loop asked.
func TestTakeYieldsWithinOfTheFirstArrival(t *testing.T) {
	taking(t, 10, 2*time.Second, nil, func(c *runneltest.Cluster, b *batches, send func(...int)) {
		c.Sleep(10 * time.Second)
		send(1)
		c.Sleep(1500 * time.Millisecond)
		send(2) // does not begin a wait of its own
		c.Sleep(time.Second)
		send(3) // at 12.5 s, after the first batch
		c.Sleep(10 * time.Second)
		b.want(t, [][]int{{1, 2}, {3}}, 12*time.Second, 14500*time.Millisecond)
	})
}

// The time that events have waited in the buffer while the loop was busy counts.
func TestTakeCountsTheTimeWhileTheLoopIsBusy(t *testing.T) {
	b := &batches{}
	cluster(t, 1, func(_ context.Context, ev *runnel.Events[item]) error {
		for is := range ev.Take(10, 2*time.Second).Records() {
			b.note(is)
			time.Sleep(5 * time.Second)
		}
		return nil
	}, nil, func(c *runneltest.Cluster, send func(...int)) {
		ready(c, "a")
		b.began = time.Now()
		send(1)
		c.Sleep(3 * time.Second)
		send(2) // while the first batch is being processed, from 2 s to 7 s
		c.Sleep(10 * time.Second)
	})
	b.want(t, [][]int{{1}, {2}}, 2*time.Second, 7*time.Second)
}

func TestTakeWakesNothingWhenIdle(t *testing.T) {
	taking(t, 10, time.Second, nil, func(c *runneltest.Cluster, b *batches, send func(...int)) {
		c.Sleep(time.Minute)
		if n := b.len(); n != 0 {
			t.Fatalf("%d batches of nothing", n)
		}
		send(1)
		c.Sleep(time.Minute)
		b.want(t, [][]int{{1}}, time.Minute+time.Second)
	})
}

func TestTakeIsNeverEmptyAndNeverLongerThanN(t *testing.T) {
	taking(t, 4, 20*time.Millisecond, nil, func(c *runneltest.Cluster, b *batches, send func(...int)) {
		for n := range 50 {
			for k := range n % 7 {
				send(100*n + k)
			}
			c.Sleep(time.Duration(n%5) * 7 * time.Millisecond)
		}
		c.Sleep(time.Second)
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.got) == 0 {
			t.Fatal("no batches")
		}
		var all []int
		for _, batch := range b.got {
			if len(batch) == 0 || len(batch) > 4 {
				t.Errorf("a batch of %d", len(batch))
			}
			all = append(all, batch...)
		}
		if !slices.IsSorted(all) || len(all) != 147 {
			t.Errorf("%d of 147 events, in order: %v", len(all), slices.IsSorted(all))
		}
	})
}

func TestTakeOfMoreThanPrefetch(t *testing.T) {
	taking(t, 10, time.Hour, &runnel.ProcessorOptions{Prefetch: 2}, func(c *runneltest.Cluster, b *batches, send func(...int)) {
		send(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
		c.Sleep(time.Second)
		b.want(t, [][]int{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}, 0)
	})
}

func TestTakeWithoutWithinTakesWhatIsThere(t *testing.T) {
	for _, within := range []time.Duration{0, -time.Second} {
		taking(t, 10, within, nil, func(c *runneltest.Cluster, b *batches, send func(...int)) {
			for n := range 3 {
				send(n)
				c.Sleep(time.Second)
			}
			b.want(t, [][]int{{0}, {1}, {2}}, 0, time.Second, 2*time.Second)
		})
	}
}

func TestTakeOfNothingPanics(t *testing.T) {
	wantPanic(t, "Take(0, 1s): n must be at least 1", func() { new(runnel.Events[item]).Take(0, time.Second) })
}

// A batch that may not grow any more is yielded: waiting would not help.
func TestTakeYieldsWhatFillsTheBuffer(t *testing.T) {
	var mu sync.Mutex
	var sizes []int
	large := func(o *runnel.Options) (*runnel.App, *runnel.Stream[[]byte]) {
		app := runnel.New("contract", o)
		return app, runnel.NewStream(app, "large", func([]byte) string { return "" }, &runnel.StreamOptions{Partitions: 1})
	}
	runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
		app, s := large(o)
		s.Process("p", runnel.EachBatch(100, time.Hour, func(_ context.Context, _ []*runnel.Event, records [][]byte) error {
			mu.Lock()
			defer mu.Unlock()
			sizes = append(sizes, len(records))
			return nil
		}), &runnel.ProcessorOptions{PrefetchBytes: 350_000})
		return app
	}, func(c *runneltest.Cluster) {
		ready(c, "a")
		app, s := large(c.Options("sender"))
		defer app.Close()
		for n := range 9 {
			if err := s.Send(c.Context(), bytes.Repeat([]byte{byte(n)}, 100_000)); err != nil {
				t.Fatal(err)
			}
		}
		c.Sleep(time.Minute)
	})
	total := 0
	for _, n := range sizes {
		total += n
		if n < 1 || n > 3 {
			t.Errorf("a batch of %d in a buffer for 3", n)
		}
	}
	if total < 7 {
		t.Errorf("yielded %v in a minute", sizes)
	}
}

// A batch that nearly fills the buffer must not wait for room that only it could
// make: single events, one after the other, fill it to the last.
func TestTakeFillsUpOneByOne(t *testing.T) {
	t.Parallel()
	for _, n := range []int{10, 256, 300} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			taking(t, n, time.Hour, nil, func(c *runneltest.Cluster, b *batches, send func(...int)) {
				var want []int
				for i := range n {
					if want = append(want, i); i%3 == 0 {
						c.Sleep(time.Millisecond)
					}
					send(i)
				}
				c.Sleep(time.Second)
				b.want(t, [][]int{want})
			})
		})
	}
}

func TestSlicesOfTakeOfOneMayBeKept(t *testing.T) {
	var events [][]*runnel.Event
	var records, alone [][]item
	s := declareItems(func(_ context.Context, ev *runnel.Events[item]) error {
		for es, is := range ev.Take(1, 0).All() {
			if events, records = append(events, es), append(records, is); len(records) == 3 {
				break
			}
		}
		for is := range ev.Take(1, 0).Records() {
			alone = append(alone, is)
		}
		return nil
	}, nil)
	runneltest.Process(t, s, "p", items(1, 2, 3, 4, 5)...)
	var got []string
	for i := range events {
		got = append(got, events[i][0].ID)
	}
	if fmt.Sprint(got, records, alone) != "[1-0 2-0 3-0] [[{1}] [{2}] [{3}]] [[{4}] [{5}]]" {
		t.Errorf("kept %v %v %v", got, records, alone)
	}
}

// Full batches do not wait for their time when enough events are in Redis, also
// where less room is left than a read usually brings.
func TestTakeIsFullAtOnceWhenEnoughIsThere(t *testing.T) {
	for _, n := range []int{300, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			b := &batches{}
			cluster(t, 1, func(_ context.Context, ev *runnel.Events[item]) error {
				for is := range ev.Take(n, time.Hour).Records() {
					b.note(is)
				}
				return nil
			}, nil, func(c *runneltest.Cluster, send func(...int)) {
				var want [][]int
				for batch := range 3 {
					want = append(want, nil)
					for i := range n {
						want[batch] = append(want[batch], batch*n+i)
					}
					send(want[batch]...)
				}
				b.began = time.Now()
				ready(c, "a")
				c.Sleep(time.Second)
				b.want(t, want)
			})
		})
	}
}
