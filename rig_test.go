// What the tests of this package share: a stream of items and a cluster in fake time.

package runnel_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

// item is the record of the contract's tests.
type item struct {
	N int `json:"n"`
}

func keyOfItem(item) string { return "k" }

var errBad = errors.New("bad")

// items are records with these numbers.
func items(numbers ...int) []item {
	out := make([]item, len(numbers))
	for i, n := range numbers {
		out[i].N = n
	}
	return out
}

// declareItems declares a stream with one processor, "p".
func declareItems(fn runnel.ProcessFunc[item], opts *runnel.ProcessorOptions) *runnel.Stream[item] {
	s := runnel.NewStream(runnel.New("contract", nil), "items", keyOfItem, nil)
	s.Process("p", fn, opts)
	return s
}

func wantAcked(t *testing.T, got *runneltest.Result, want ...string) {
	t.Helper()
	if !slices.Equal(got.Acked, want) {
		t.Errorf("acked %v, want %v", got.Acked, want)
	}
}

func wantErr(t *testing.T, got, want error) {
	t.Helper()
	if (got == nil) != (want == nil) || !errors.Is(got, want) {
		t.Errorf("got error %v, want %v", got, want)
	}
}

// wantPanic calls fn, which should panic with a text that contains want.
func wantPanic(t *testing.T, want string, fn func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if text := fmt.Sprint(recover()); !strings.Contains(text, want) {
			t.Errorf("panicked with %q, want %q", text, want)
		}
	}()
	fn()
}

// notes takes down what happens in several goroutines.
type notes struct {
	mu    sync.Mutex
	lines []string
}

func (n *notes) add(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, line)
}

func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.lines)
}

func (n *notes) has(line string) bool { return slices.Contains(n.all(), line) }

// simulated is a cluster in fake time of an app with the stream "items" and the processor "p",
// and an app outside of the workers that declares the stream, too.
type simulated struct {
	*runneltest.Cluster
	t      *testing.T
	app    *runnel.App
	stream *runnel.Stream[item]
}

// A simulation describes such a cluster.
type simulation struct {
	key    func(item) string                   // nil: the number of the item
	stream *runnel.StreamOptions               // nil: one partition
	worker func(opts *runnel.Options)          // changes the options of each worker; may be nil
	others map[string]runnel.ProcessFunc[item] // processors beside "p"
}

// simulate runs a cluster; the key of an item is its number. log may be nil.
func simulate(t *testing.T, log slog.Handler, stream *runnel.StreamOptions, fn runnel.ProcessFunc[item], opts *runnel.ProcessorOptions,
	run func(c *simulated)) {
	t.Helper()
	simulation{stream: stream, worker: func(o *runnel.Options) {
		if log != nil {
			o.Logger = slog.New(log)
		}
	}}.run(t, fn, opts, run)
}

func (s simulation) run(t *testing.T, fn runnel.ProcessFunc[item], opts *runnel.ProcessorOptions, run func(c *simulated)) {
	t.Helper()
	key, stream := s.key, s.stream
	if key == nil {
		key = func(i item) string { return fmt.Sprint(i.N) }
	}
	if stream == nil {
		stream = &runnel.StreamOptions{Partitions: 1}
	}
	declare := func(o *runnel.Options) (*runnel.App, *runnel.Stream[item]) {
		app := runnel.New("contract", o)
		return app, runnel.NewStream(app, "items", key, stream)
	}
	runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
		if s.worker != nil {
			s.worker(o)
		}
		app, items := declare(o)
		items.Process("p", fn, opts)
		for name, fn := range s.others {
			items.Process(name, fn, opts)
		}
		return app
	}, func(c *runneltest.Cluster) {
		app, s := declare(c.Options("sender"))
		defer app.Close()
		run(&simulated{c, t, app, s})
	})
}

func (c *simulated) send(numbers ...int) {
	c.t.Helper()
	c.must(c.stream.Send(c.Context(), items(numbers...)...))
}

func (c *simulated) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// cluster simulates workers of an app with one stream of that many partitions.
func cluster(t *testing.T, partitions int, fn runnel.ProcessFunc[item], opts *runnel.ProcessorOptions,
	run func(c *runneltest.Cluster, send func(numbers ...int))) {
	t.Helper()
	simulate(t, nil, &runnel.StreamOptions{Partitions: partitions}, fn, opts, func(c *simulated) { run(c.Cluster, c.send) })
}

// append appends items to the partition of one without the framework.
func (c *simulated) append(first, last int) {
	c.t.Helper()
	for n := first; n <= last; n++ {
		c.must(c.Redis().XAdd(c.Context(), xadd(n)).Err())
	}
}

// stop stops a worker, which should end without an error.
func (c *simulated) stop(w *runneltest.Worker) {
	c.t.Helper()
	if err := w.Stop(); err != nil {
		c.t.Errorf("Run: %v", err)
	}
}

// ready starts a worker and waits until it owns what it should.
func ready(c *runneltest.Cluster, name string) *runneltest.Worker {
	w := c.Start(name)
	c.Wait(func() bool { return w.App().Ready() == nil })
	return w
}

// near reports whether d is want, give or take the few milliseconds that a wake-up
// by the embedded server may cost.
func near(d, want time.Duration) bool { return d >= want && d < want+50*time.Millisecond }

// xadd appends an item to the partition of cluster without the framework.
func xadd(n int) *redis.XAddArgs {
	return &redis.XAddArgs{Stream: "__strm:contract.items.0", Values: []any{"json", fmt.Sprintf(`{"N":%d}`, n)}}
}
