//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/history"
)

const (
	partitions = 16
	lockExpiry = time.Second
	// grace is longer than a request may take on a silent link: a function that waits for a reply
	// does return.
	grace = 5 * time.Second
)

type job struct {
	Key string `json:"key"`
	Seq int64  `json:"seq"`
}

// declare makes the app of workers and producers. end closes it.
func declare(w way, worker string) (app *runnel.App, jobs *runnel.Stream[job], end func()) {
	o := &runnel.Options{
		WorkerName: worker,
		Logger:     slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Processor:  runnel.ProcessorOptions{Lease: lockExpiry, Grace: grace},
		Durability: runnel.Durability{Timeout: lockExpiry / 2},
	}
	leave := w.use(o)
	app = runnel.New("chaos", o)
	jobs = runnel.NewStream(app, "jobs", func(j job) string { return j.Key },
		&runnel.StreamOptions{Partitions: partitions, MaxLen: 20_000, DedupWindow: 2 * time.Minute})
	return app, jobs, func() {
		app.Close()
		leave()
	}
}

// TestMain runs a worker if the test binary was started as one.
func TestMain(m *testing.M) {
	if name := os.Getenv("RUNNEL_CHAOS_WORKER"); name != "" {
		if err := work(name, os.Getenv("RUNNEL_CHAOS_WAY"), os.Getenv("RUNNEL_CHAOS_LOG")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	redis.SetLogger(silent{})
	code := m.Run()
	if testing.Verbose() && len(all.list) > 0 {
		fmt.Println(tables())
	}
	os.RemoveAll(builds())
	os.Exit(code)
}

// silent discards the log of the test's own client, whose servers are down now and then.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func work(name, to, path string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log, err := history.Open(path, name) // the driver waits for it before it terminates
	if err != nil {
		return err
	}
	if os.Getenv(stepVariable) != "" {
		go watchClock(log, ctx.Done())
	}
	w, err := parseWay(to)
	if err != nil {
		return err
	}
	app, jobs, end := declare(w, name)
	defer end()
	declareSet(app)
	processMarks(app)
	note, err := noting(path)
	if err != nil {
		return err
	}
	declareScheduler(app, note)
	if os.Getenv("RUNNEL_CHAOS_DELIVERY") != "" {
		deliver(log, jobs)
		return app.Run(ctx)
	}
	jobs.Process("check", noticing(log, func(ctx context.Context, events *runnel.Events[job]) error {
		for e, j := range events.All() {
			if err := iterate(events.Context(), log, e, j); err != nil {
				return err
			}
		}
		return nil
	}), nil)
	return app.Run(ctx)
}

// noticing makes a function record that it lost its partition. This may happen on a busy machine
// without a fault; the handover is then not clean.
func noticing(log *history.Log, fn runnel.ProcessFunc[job]) runnel.ProcessFunc[job] {
	return func(ctx context.Context, events *runnel.Events[job]) error {
		err := fn(ctx, events)
		if errors.Is(context.Cause(ctx), runnel.ErrLost) {
			_ = log.Write(history.Record{Kind: history.Fault, Fault: history.Lost, Worker: os.Getenv("RUNNEL_CHAOS_WORKER")})
		}
		return err
	}
}

func iterate(ctx context.Context, log *history.Log, e *runnel.Event, j job) error {
	it, err := log.Begin(recordOf(e, j))
	if err != nil {
		return err
	}
	dawdle(ctx)
	return it.Complete()
}

func recordOf(e *runnel.Event, j job) history.Record {
	return history.Record{
		Stream: e.Stream, Processor: "check", Partition: e.Partition, Epoch: e.Epoch,
		IDs: []string{e.ID}, Keys: []string{j.Key}, Seqs: []int64{j.Seq},
	}
}

// dawdle pauses, sometimes for long.
func dawdle(ctx context.Context) {
	switch rand.N(20) {
	case 0:
		select {
		case <-time.After(rand.N(20 * time.Millisecond)):
		case <-ctx.Done():
		}
	case 1, 2, 3:
		select {
		case <-time.After(rand.N(2 * time.Millisecond)):
		case <-ctx.Done():
		}
	}
}
