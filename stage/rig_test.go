package stage_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
	"github.com/runnel-go/runnel/stage"
)

// An item is the entity of most tests.
type item struct {
	ID   string
	A, B int
	Text string
}

type items = *stage.Set[item]

// A rig is a cluster in fake time whose apps have one set, declared by the test.
type rig struct {
	*testing.T
	c        *runneltest.Cluster
	set      items // of an app outside of the workers
	ofWorker items // of the last one that was started
	app      *runnel.App
	worker   *runneltest.Worker // of inLateRig
	declare  func(s items)
	opts     stage.Options

	mu    sync.Mutex
	began time.Time
	calls []string
	told  strings.Builder // by workers, as errors
}

// Write notes a log line.
func (r *rig) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told.Write(line)
}

// inRig runs fn with a rig. Its set has 3 partitions where opts say no other number.
func inRig(t *testing.T, opts *stage.Options, declare func(r *rig, s items), fn func(r *rig)) {
	t.Helper()
	r := &rig{T: t}
	if opts != nil {
		r.opts = *opts
	}
	r.opts.Partitions = cmp.Or(r.opts.Partitions, 3)
	r.declare = func(s items) { declare(r, s) }
	runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
		if os.Getenv("RUNNEL_SIM_LOG") == "" {
			o.Logger = slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelError}))
		}
		app := runnel.New("shop", o)
		r.ofWorker = stage.New(app, "items", func(e item) string { return e.ID }, &r.opts)
		r.declare(r.ofWorker)
		return app
	}, func(c *runneltest.Cluster) {
		r.c, r.began = c, time.Now()
		r.app = runnel.New("shop", c.Options("outside"))
		defer r.app.Close()
		r.set = stage.New(r.app, "items", func(e item) string { return e.ID }, &r.opts)
		r.declare(r.set)
		fn(r)
	})
}

// start starts a worker, and waits until it has all partitions.
func (r *rig) start(name string) *runneltest.Worker {
	r.Helper()
	w := r.c.Start(name)
	r.c.Wait(func() bool { return w.App().Ready() == nil })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began = time.Now()
	return w
}

// note notes a call of a function, with the time since the worker was ready.
func (r *rig) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, fmt.Sprintf(format, args...))
}

func (r *rig) since() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.began).Round(100 * time.Millisecond)
}

// noted returns the calls that were noted.
func (r *rig) noted() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

func (r *rig) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = nil
}

// wants checks the calls that were noted, and forgets them.
func (r *rig) wants(calls ...string) {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.calls, calls) {
		r.Errorf("calls\n%s\nwant\n%s", strings.Join(r.calls, "\n"), strings.Join(calls, "\n"))
	}
	r.calls = nil
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) put(values ...item) {
	r.Helper()
	r.must(r.set.Put(r.c.Context(), values...))
}

func (r *rig) get(id string) stage.Entity[item] {
	r.Helper()
	e, err := r.set.Get(r.c.Context(), id)
	r.must(err)
	return e
}

// keys are the keys that tell of visits, without their partitions.
func (r *rig) keys() string {
	var found []string
	for _, key := range r.c.Redis().Keys(r.c.Context(), "*").Val() {
		for _, kind := range []string{"__touch:", "__visit:", "__visitrun:", "__visitfail:", "__visitdead:"} {
			if name, ok := strings.CutPrefix(key, kind); ok {
				found = append(found, kind[2:]+name[:strings.LastIndex(name, ".")])
			}
		}
	}
	slices.Sort(found)
	return strings.Join(slices.Compact(found), " ")
}

// rests checks that nothing waits, runs or failed.
func (r *rig) rests() {
	r.Helper()
	r.c.Wait(func() bool { return r.keys() == "" })
}

// does returns a function that notes its calls and does something.
func (r *rig) does(do func(ctx context.Context, e *item) (stage.Result, error)) stage.Func[item] {
	return func(ctx context.Context, e *item) (stage.Result, error) {
		v, _ := stage.VisitOf(ctx)
		r.note("%s %s %d at %v", v.Stage, v.ID, v.Attempt, r.since())
		return do(ctx, e)
	}
}
