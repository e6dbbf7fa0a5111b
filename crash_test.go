// An event that ends each worker that begins it counts as failed.

package runnel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/runneltest"
)

const deadlyItem = 777

// A fatal is a cluster of four partitions in which an event ends each worker that
// processes it or, with decode, that only decodes it.
type fatal struct {
	opts   *runnel.ProcessorOptions
	decode bool
	batch  int

	mu      sync.Mutex
	workers map[string]*runneltest.Worker
	begun   []string // "<N>"
	deaths  int
	mended  bool
}

// fatally is a codec of a worker that an item ends.
type fatally struct {
	codec.Codec
	f      *fatal
	worker string
}

func (c fatally) Decode(data []byte, v any) error {
	var i item
	if err := json.Unmarshal(data, &i); err == nil && i.N == deadlyItem && c.f.decode {
		c.f.kill(c.worker)
	}
	return c.Codec.Decode(data, v)
}

// kill ends a worker, and what runs in it, unless the function is mended.
func (f *fatal) kill(worker string) {
	f.mu.Lock()
	w := f.workers[worker]
	if f.mended || w == nil {
		f.mu.Unlock()
		return
	}
	f.deaths++
	f.mu.Unlock()
	w.Kill()
	time.Sleep(time.Minute)
}

func (f *fatal) declare(o *runnel.Options) (*runnel.App, *runnel.Stream[item]) {
	app := runnel.New("contract", o)
	return app, runnel.NewStream(app, "items", func(i item) string { return fmt.Sprint(i.N) },
		&runnel.StreamOptions{Partitions: 4, Codec: fatally{codec.JSON, f, o.WorkerName}})
}

func (f *fatal) build(o *runnel.Options) *runnel.App {
	app, s := f.declare(o)
	process := func(ctx context.Context, is []item) error {
		for _, i := range is {
			if err := runneltest.Gate(ctx); err != nil {
				return err
			}
			f.mu.Lock()
			f.begun = append(f.begun, fmt.Sprint(i.N))
			f.mu.Unlock()
			time.Sleep(20 * time.Millisecond)
			if i.N == deadlyItem && !f.decode {
				f.kill(o.WorkerName)
			}
		}
		return runneltest.Gate(ctx)
	}
	fn := runnel.Each(func(ctx context.Context, _ *runnel.Event, i item) error { return process(ctx, []item{i}) })
	if f.batch > 0 {
		fn = runnel.EachBatch(f.batch, 10*time.Millisecond, func(ctx context.Context, _ []*runnel.Event, is []item) error { return process(ctx, is) })
	}
	s.Process("p", fn, f.opts)
	return app
}

// run sends events and keeps one worker running, a new one for each that dies, until it
// has lasted for a minute, or has died more often than most times.
func (f *fatal) run(t *testing.T, c *runneltest.Cluster, most int) {
	app, s := f.declare(c.Options("sender"))
	defer app.Close()
	f.workers = map[string]*runneltest.Worker{}
	var numbers []int
	for n := range 60 {
		numbers = append(numbers, n)
	}
	numbers = slices.Insert(numbers, 30, deadlyItem)
	started := 0
	start := func() *runneltest.Worker {
		started++
		f.mu.Lock()
		defer f.mu.Unlock()
		name := fmt.Sprint("w", started)
		f.workers[name] = c.Start(name)
		return f.workers[name]
	}
	w := start()
	c.Sleep(3 * time.Second)
	if err := s.Send(c.Context(), items(numbers...)...); err != nil {
		t.Fatal(err)
	}
	for calm := 0; calm < 60 && f.died() <= most; calm++ {
		c.Sleep(time.Second)
		select {
		case <-w.Done():
			w, calm = start(), 0
		default:
		}
	}
}

func (f *fatal) died() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.deaths
}

// others are the events that were begun, but for the deadly one, each once.
func (f *fatal) others() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	is := map[string]bool{}
	for _, n := range f.begun {
		is[n] = n != fmt.Sprint(deadlyItem)
	}
	delete(is, fmt.Sprint(deadlyItem))
	return len(is)
}

// An event that ends each worker counts as one that failed, with a Retry or without:
// also where decoding it is enough.
func TestAnEventThatEndsEachWorkerCountsAsFailed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		opts   *runnel.ProcessorOptions
		decode bool
		batch  int
		others int // at least
	}{
		{"quarantine", &runnel.ProcessorOptions{OnError: runnel.Quarantine}, false, 0, 40},
		{"quarantine, by decoding", &runnel.ProcessorOptions{OnError: runnel.Quarantine}, true, 0, 40},
		{"quarantine, in batches", &runnel.ProcessorOptions{OnError: runnel.Quarantine}, false, 5, 40},
		{"ignore", &runnel.ProcessorOptions{OnError: runnel.Ignore}, false, 0, 60},
		{"ignore, by decoding", &runnel.ProcessorOptions{OnError: runnel.Ignore}, true, 0, 60},
		{"retry", retrying(3, runnel.OrderKey), false, 0, 60},
		{"retry of the partition, by decoding", retrying(3, runnel.OrderPartition), true, 0, 60},
		{"retry of the key, by decoding", retrying(3, runnel.OrderKey), true, 0, 60},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := &fatal{opts: tt.opts, decode: tt.decode, batch: tt.batch}
			f.opts.Lease = time.Second
			runneltest.Sim(t, f.build, func(c *runneltest.Cluster) {
				f.run(t, c, 12)
				t.Logf("%d workers died", f.died())
				if n := f.died(); n > 8 || n < 3 {
					t.Errorf("%d workers died of it", n)
				}
				if n := f.others(); n < tt.others {
					t.Errorf("%d other events were begun", n)
				}
				o := operator(t, c)
				defer o.Close()
				var dead []string
				quarantined := 0
				for p := range 4 {
					dead = append(dead, deadLetters(t, c, p)...)
					if q, err := o.Quarantined(c.Context(), o.Partition("items", "p", p)); err != nil {
						t.Error(err)
					} else if q != nil {
						quarantined++
						entries := c.Redis().XRange(c.Context(), fmt.Sprint("__strm:contract.items.", p), q.Event, q.Event).Val()
						if len(entries) != 1 || !strings.Contains(fmt.Sprint(entries[0].Values), fmt.Sprint(deadlyItem)) || !strings.Contains(q.Reason, "in a row") {
							t.Errorf("quarantined: %+v, %v", q, entries)
						}
					}
				}
				if (quarantined == 1) != (tt.opts.OnError == runnel.Quarantine) || quarantined > 1 {
					t.Errorf("%d partitions are quarantined", quarantined)
				}
				if (len(dead) == 1 && strings.HasSuffix(dead[0], " crash")) != (tt.opts.Retry != nil) || len(dead) > 1 {
					t.Errorf("dead letters %q", dead)
				}
			})
		})
	}
}

// Under Halt such an event is tried again, and shown until it is done.
func TestAnEventThatEndsEachWorkerIsShown(t *testing.T) {
	t.Parallel()
	f := &fatal{opts: &runnel.ProcessorOptions{OnError: runnel.Halt, Lease: time.Second}}
	runneltest.Sim(t, f.build, func(c *runneltest.Cluster) {
		f.run(t, c, 5)
		o := operator(t, c)
		defer o.Close()
		shown := func() (found []string) {
			for p := range 4 {
				views, err := o.Views(c.Context(), []store.Partition{o.Partition("items", "p", p)})
				if err != nil || views[0].Err != nil {
					t.Fatal(err, views)
				}
				if h := views[0].Halt; h != nil {
					found = append(found, fmt.Sprint(h.Reason, " ", c.Redis().XRange(c.Context(), fmt.Sprint("__strm:contract.items.", p), h.Event, h.Event).Val()[0].Values))
				}
			}
			return found
		}
		if got := shown(); f.died() != 6 || len(got) != 1 || !strings.Contains(got[0], "5 times in a row") || !strings.Contains(got[0], fmt.Sprint(deadlyItem)) {
			t.Errorf("%d workers died; shown: %q", f.died(), got)
		}
		f.mu.Lock()
		f.mended = true
		f.mu.Unlock()
		c.Start("mended")
		c.Sleep(time.Minute)
		if got := shown(); len(got) != 0 || f.others() != 60 {
			t.Errorf("after it was mended %d others are done; shown: %q", f.others(), got)
		}
	})
}
