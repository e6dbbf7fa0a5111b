package schedule_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	ischedule "github.com/runnel-go/runnel/internal/schedule"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/runneltest"
	"github.com/runnel-go/runnel/schedule"
)

// A rig is a cluster in fake time whose apps have one scheduler, declared by the test.
type rig struct {
	*testing.T
	c       *runneltest.Cluster
	app     *runnel.App // outside of the workers
	s       *schedule.Scheduler
	declare func(s *schedule.Scheduler)
	opts    schedule.Options
	began   time.Time

	mu   sync.Mutex
	ran  []string // in order of their ends
	told strings.Builder
}

// Write notes a log line.
func (r *rig) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told.Write(line)
}

func (r *rig) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ran = append(r.ran, fmt.Sprintf(format, args...))
}

// notes returns what was noted, and forgets it.
func (r *rig) notes() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.ran
	r.ran = nil
	return out
}

// does is a function that notes its run as "task@hours:minutes".
func (r *rig) does(err error) schedule.Func {
	return func(_ context.Context, run *schedule.Run) error {
		r.note("%s@%s", run.Task, run.Time.Format("15:04"))
		return err
	}
}

// inRig runs fn with a rig of 4 partitions.
func inRig(t *testing.T, opts *schedule.Options, declare func(r *rig, s *schedule.Scheduler), fn func(r *rig)) {
	t.Helper()
	r := &rig{T: t}
	if opts != nil {
		r.opts = *opts
	}
	r.opts.Partitions = 4
	r.declare = func(s *schedule.Scheduler) { declare(r, s) }
	runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
		if os.Getenv("RUNNEL_SIM_LOG") == "" {
			o.Logger = slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelError}))
		}
		app := runnel.New("shop", o)
		r.declare(schedule.New(app, "schedule", &r.opts))
		return app
	}, func(c *runneltest.Cluster) {
		r.c, r.began = c, time.Now()
		app := runnel.New("shop", c.Options("outside"))
		defer app.Close()
		r.app, r.s = app, schedule.New(app, "schedule", &r.opts)
		fn(r)
	})
}

// start starts a worker and waits until it has what it should.
func (r *rig) start(name string) *runneltest.Worker {
	w := r.c.Start(name)
	r.c.Wait(func() bool { return w.App().Ready() == nil })
	return w
}

// calls are those of the scheduler, as workers and commands make them.
func (r *rig) calls() *ischedule.Scheduler {
	client, err := store.Open(redisconn.Options{Redis: r.c.Redis(), Keys: keys.Keys{App: "shop", Layout: keys.Standalone}})
	r.must(err)
	return ischedule.New(client, "schedule")
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// done waits for an operation.
func (r *rig) done(op *schedule.Op, err error) string {
	r.Helper()
	r.must(err)
	outcome, err := op.Wait(r.c.Context())
	r.must(err)
	return outcome
}

// want compares notes, in any order.
func (r *rig) want(what string, want ...string) {
	r.Helper()
	got := r.notes()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		r.Errorf("%s: got %q, want %q\n%s", what, got, want, r.told.String())
	}
}

// priorities are those of the cells of a partition, by task.
func (r *rig) priorities(n int) map[string]int64 {
	r.Helper()
	all := map[string]int64{}
	for cell, text := range r.c.Redis().HGetAll(r.c.Context(), fmt.Sprintf("__scell:shop.schedule.%d", n)).Val() {
		var stored struct{ P int64 }
		r.must(json.Unmarshal([]byte(text), &stored))
		task, _, _ := strings.Cut(cell, "@")
		all[task] = stored.P
	}
	return all
}
