package cluster

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

const (
	partitions = 16
	expiry     = 3 * time.Second
	patience   = 60 * time.Second
)

// A step is one record: the N-th of its key.
type step struct {
	Key string `json:"key"`
	N   int    `json:"n"`
}

// A rig is a cluster, its workers, and the steps they have seen.
type rig struct {
	t *testing.T
	k *redistest.Cluster

	mu   sync.Mutex
	seen map[string][]int // by key
	logs redistest.Log
}

func newRig(t *testing.T, replicas int, args ...string) *rig {
	return &rig{t: t, k: redistest.StartCluster(t, 3, replicas, args...), seen: map[string][]int{}}
}

func (r *rig) options(adjust func(*runnel.Options)) *runnel.Options {
	o := &runnel.Options{
		RedisURL: r.k.URL(), Logger: r.logs.Logger(),
		Stream:    runnel.StreamOptions{Partitions: partitions, Codec: codec.JSON, KeyField: "key"},
		Processor: runnel.ProcessorOptions{Lease: expiry, Grace: time.Second},
	}
	if adjust != nil {
		adjust(o)
	}
	return o
}

func (r *rig) app(adjust func(*runnel.Options)) (*runnel.App, *runnel.Stream[step]) {
	app := runnel.New("shop", r.options(adjust))
	r.t.Cleanup(func() { app.Close() })
	s := runnel.NewStream(app, "steps", func(s step) string { return s.Key }, nil)
	s.Process("walker", runnel.Each(func(_ context.Context, _ *runnel.Event, s step) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seen[s.Key] = append(r.seen[s.Key], s.N)
		return nil
	}), nil)
	return app, s
}

// run runs an app until the test ends, or stop is called.
func (r *rig) run(app *runnel.App) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				r.t.Errorf("Run: %v", err)
			}
		})
	}
	r.t.Cleanup(stop)
	return stop
}

func (r *rig) await(what string, yes func() bool) {
	r.t.Helper()
	redistest.Eventually(r.t, what, yes, func() string {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.logs.String()
	})
}

func (r *rig) command(app *runnel.App, line, stdin string) string {
	r.t.Helper()
	var out, errs bytes.Buffer
	if code := cli.Main(r.t.Context(), app, strings.Fields(line), strings.NewReader(stdin), &out, &errs); code != 0 {
		r.t.Fatalf("%s: exit code %d\n%s%s", line, code, out.String(), errs.String())
	}
	return out.String()
}

// handled returns, per key, the N up to which all were handled, in order. repeats allows repeated
// ones.
func (r *rig) handled(repeats bool) map[string]int {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	last := map[string]int{}
	for key, all := range r.seen {
		for _, n := range all {
			switch {
			case n == last[key]+1:
				last[key] = n
			case n > last[key]:
				r.t.Fatalf("key %s: %d after %d\n%s", key, n, last[key], r.logs.String())
			case !repeats:
				r.t.Fatalf("key %s: %d again, after %d\n%s", key, n, last[key], r.logs.String())
			}
		}
	}
	return last
}

// A sender sends steps of some keys in turn until it is stopped.
type sender struct {
	r    *rig
	s    *runnel.Stream[step]
	keys int
	sent map[string]int // accepted
	errs []error
	stop chan struct{}
	done chan struct{}
}

// send begins to send. A step that was not accepted for certain is sent again with its ID, so that
// none is missing or there twice.
func (r *rig) send(s *runnel.Stream[step], keys int) *sender {
	x := &sender{r: r, s: s, keys: keys, sent: map[string]int{}, stop: make(chan struct{}), done: make(chan struct{})}
	go x.run()
	return x
}

func (x *sender) run() {
	defer close(x.done)
	for n := 1; ; n++ {
		for k := range x.keys {
			key := fmt.Sprint("k", k)
			for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
				_, err := x.s.SendEvents(context.Background(), runnel.Outgoing[step]{Record: step{key, n}, DedupID: fmt.Sprint(key, "-", n)})
				if err == nil {
					break
				}
				x.errs = append(x.errs, err)
				select {
				case <-x.stop:
					return
				case <-time.After(pause):
				}
			}
			x.sent[key] = n
		}
		select {
		case <-x.stop:
			return
		default:
		}
	}
}

// end stops sending and returns the last accepted N of each key.
func (x *sender) end() map[string]int {
	close(x.stop)
	<-x.done
	return x.sent
}

// all waits until everything sent has been handled.
func (r *rig) all(sent map[string]int, repeats bool) {
	r.t.Helper()
	r.await("all is handled", func() bool {
		return r.reached(sent, r.handled(repeats))
	})
}

func (r *rig) reached(sent, got map[string]int) bool {
	for key, n := range sent {
		if got[key] < n {
			return false
		}
	}
	return true
}
