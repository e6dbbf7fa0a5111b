//go:build !race

// Under the race detector so many workers take minutes to settle: make unraced runs this without it.

package conformance_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/worker"
	"github.com/runnel-go/runnel/rebalance"
)

// commandsOf returns the commands that the server has executed, by name, inside scripts too, except
// those that open connections.
func commandsOf(t *testing.T, rdb *redis.Client) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for line := range strings.Lines(rdb.Info(t.Context(), "commandstats").Val()) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !ok || name == "info" || name == "hello" || strings.HasPrefix(name, "client") {
			continue
		}
		var n int64
		fmt.Sscan(strings.ReplaceAll(rest, ",", " "), &n)
		out[name] = n
	}
	return out
}

// perWorker returns how many commands the server executes in a second for each of so many workers, and logs which.
func perWorker(t *testing.T, rdb *redis.Client, many int) (total float64) {
	before, from := commandsOf(t, rdb), time.Now()
	time.Sleep(10 * time.Second)
	after, took := commandsOf(t, rdb), time.Since(from)
	for name, n := range after {
		each := float64(n-before[name]) / float64(many) / took.Seconds()
		total += each
		if each >= 0.01 {
			t.Logf("%-12s %.2f a second and worker", name, each)
		}
	}
	t.Logf("%-12s %.2f a second and worker", "all", total)
	return total
}

// Each of 100 idle workers costs the server at most five commands a second. When all end at once,
// neither members nor locks are left.
func TestManyWorkersCostLittle(t *testing.T) {
	const many, partitions, most = 100, 32, 5.0
	srv := redistest.Start(t)
	rdb := srv.Client(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var running sync.WaitGroup
	posts := startMany(ctx, t, srv.URL(), &running, many, partitions)
	began := time.Now()
	settled := func() bool {
		for _, p := range posts {
			stats := p.stats()
			if stats == nil || stats.Ready != nil || stats.Processors[0].Members != many {
				return false
			}
		}
		return true
	}
	await(t, "all to settle", 10*time.Minute, settled)
	t.Logf("settled after %v", time.Since(began).Round(100*time.Millisecond))

	total := perWorker(t, rdb, many)
	for again := 0; total > most && again < 5; again++ { // a busy machine has them look at each other more often
		total = perWorker(t, rdb, many)
	}
	if total > most {
		t.Errorf("%.2f commands a second and worker, want %v at most", total, most)
	}

	began = time.Now()
	cancel()
	running.Wait()
	t.Logf("ended after %v", time.Since(began).Round(100*time.Millisecond))
	g, err := rebalance.Parse([]byte(rdb.Get(t.Context(), "__memb:post.parcels.check").Val()))
	if err != nil || len(g.Executors) > 0 {
		t.Errorf("%d members are left, %v", len(g.Executors), err)
	}
	if locks := rdb.Keys(t.Context(), "__lock:*").Val(); len(locks) > 0 {
		t.Errorf("locks are left: %q", locks)
	}
}

// supervised is a worker that is restarted if it does not reach Redis in time, which happens with
// so many on a busy machine.
type supervised struct {
	mu  sync.Mutex
	app *runnel.App
}

func (p *supervised) run(ctx context.Context, t *testing.T, build func() *runnel.App) {
	for ctx.Err() == nil {
		app := build()
		p.mu.Lock()
		p.app = app
		p.mu.Unlock()
		err := app.Run(ctx)
		app.Close()
		if err == nil {
			return
		}
		t.Logf("a worker starts again: %v", err)
		time.Sleep(time.Second)
	}
}

// stats returns the worker's, nil before it runs.
func (p *supervised) stats() *worker.Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.app == nil {
		return nil
	}
	return appview.Of(p.app).Stats()
}

// startMany runs many workers of one processor in this process.
func startMany(ctx context.Context, t *testing.T, url string, running *sync.WaitGroup, many, partitions int) (posts []*supervised) {
	for n := range many {
		p := &supervised{}
		posts = append(posts, p)
		running.Go(func() {
			p.run(ctx, t, func() *runnel.App {
				app := runnel.New("post", &runnel.Options{
					RedisURL: url, WorkerName: fmt.Sprint("w", n), Logger: slog.New(slog.DiscardHandler), Stream: runnel.StreamOptions{Partitions: partitions},
				})
				s := runnel.NewStream(app, "parcels", parcelKey, nil)
				s.Process("check", runnel.Each(func(context.Context, *runnel.Event, parcel) error { return nil }), nil)
				return app
			})
		})
	}
	return posts
}
