package conformance_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A fullPipe is a log handler that never returns once its pipe is full.
type fullPipe struct {
	slog.Handler
	full  *atomic.Bool
	held  *atomic.Int64 // lines that wait in it
	freed <-chan struct{}
}

func (h fullPipe) Handle(ctx context.Context, r slog.Record) error {
	if h.full.Load() {
		h.held.Add(1)
		<-h.freed
	}
	return h.Handler.Handle(ctx, r)
}

func (h fullPipe) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// A blocked log delays no partition, no lease and no shutdown.
func TestALogThatStandsStillHoldsUpNothing(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	tr, admin := newTracker(history.Memory()), srv.Client(t)
	freed := make(chan struct{})
	defer close(freed)
	var full atomic.Bool
	var held atomic.Int64
	a := newParcelApp(t, srv.URL(), "w1", func(o *runnel.Options) {
		o.Logger = slog.New(fullPipe{o.Logger.Handler(), &full, &held, freed})
		o.Stream.Partitions = 4
		o.Processor.Lease, o.Processor.Grace = shortExpiry, time.Second
	})
	tr.process(a, "check", nil, nil)
	producer := newProducer(t, srv.URL(), 4)
	a.run()
	ready(t, 30*time.Second, a)
	f := startFlow(t, producer, tr.history, 4, 20*time.Millisecond)
	await(t, "the flow", 30*time.Second, func() bool { return tr.passed("check", 4, 5) })

	full.Store(true)
	counters := appview.Of(a.app).Stats().Processors[0].Counters
	errs := counters.Errors.Load()
	await(t, "its connections to break often", 30*time.Second, func() bool {
		admin.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes")
		time.Sleep(20 * time.Millisecond)
		return counters.Errors.Load() > errs+5 && held.Load() > 0
	})
	refreshes := counters.Refreshes.Load()
	await(t, "its leases to be renewed", 30*time.Second, func() bool { return counters.Refreshes.Load() > refreshes+6 })
	round := f.round.Load() + 1
	await(t, "the flow to go on", 30*time.Second, func() bool { return tr.passed("check", 4, round) })
	if n := counters.LostPartitions.Load(); n > 0 {
		t.Errorf("%d partitions were lost", n)
	}
	f.stop()
	last := f.round.Load()
	await(t, "the rest", 60*time.Second, func() bool { return tr.passed("check", 4, last) })
	a.stop()
	if n := len(locks(t, admin)); n > 0 {
		t.Errorf("%d locks are left", n)
	}
	tr.judge(t, srv, 4, history.Options{Processors: []string{"check"}})
}

func locks(t *testing.T, rdb *redis.Client) []string {
	t.Helper()
	keys, err := rdb.Keys(t.Context(), "__lock:*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}
