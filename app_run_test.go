// Run is called once and drains before it returns nil; Ready says what is missing until then. A
// shared client is neither closed nor blocked.

package runnel_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/worker"
	"github.com/runnel-go/runnel/runneltest"
)

var ignoreAll = runnel.Each(func(context.Context, *runnel.Event, item) error { return nil })

func TestRunReturnsNilAfterACleanDrainNeverTheContextsError(t *testing.T) {
	cluster(t, 2, ignoreAll, nil, func(c *runneltest.Cluster, send func(...int)) {
		send(1, 2, 3)
		w := ready(c, "a")
		c.Sleep(time.Second)
		if err := w.Stop(); err != nil {
			t.Errorf("cancelled: %v", err)
		}
		opts := c.Options("b")
		app := runnel.New("contract", opts)
		ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
		defer cancel()
		if err := app.Run(ctx); err != nil {
			t.Errorf("deadline: %v", err)
		}
		app.Close()
	})
}

func TestASecondRunIsAnError(t *testing.T) {
	var n notes
	fn := runnel.Each(func(_ context.Context, _ *runnel.Event, i item) error { n.add("done"); return nil })
	cluster(t, 1, fn, nil, func(c *runneltest.Cluster, send func(...int)) {
		w := ready(c, "a")
		if err := w.App().Run(c.Context()); !errors.Is(err, runnel.ErrRunning) {
			t.Errorf("the second Run: %v", err)
		}
		if err := w.App().Ready(); err != nil {
			t.Errorf("after the second Run: %v", err)
		}
		send(1)
		c.Wait(func() bool { return n.has("done") })
	})
}

func TestRegisteringAfterRunPanics(t *testing.T) {
	task := func(context.Context) error { return nil }
	cluster(t, 1, ignoreAll, nil, func(c *runneltest.Cluster, _ func(...int)) {
		opts := c.Options("b")
		app := runnel.New("contract", opts)
		s := runnel.NewStream(app, "other", keyOfItem, nil)
		ctx, cancel := context.WithTimeout(c.Context(), time.Second)
		defer cancel()
		if err := app.Run(ctx); err != nil {
			t.Fatal(err)
		}
		defer app.Close()
		for name, register := range map[string]func(){
			"NewStream": func() { runnel.NewStream(app, "late", keyOfItem, nil) },
			"Process":   func() { s.Process("late", ignoreAll, nil) },
			"Task":      func() { app.Task("late", task, nil) },
			"Every":     func() { app.Every("late", time.Second, task, nil) },
			"Cron":      func() { app.Cron("late", "@hourly", task, nil) },
		} {
			t.Log(name)
			wantPanic(t, "are registered before Run", register)
		}
	})
}

func TestRunOfAnUnknownProcessorNamesTheKnown(t *testing.T) {
	cluster(t, 1, ignoreAll, nil, func(c *runneltest.Cluster, _ func(...int)) {
		app := runnel.New("contract", c.Options("b"))
		defer app.Close()
		runnel.NewStream(app, "items", keyOfItem, nil).Process("p", ignoreAll, nil)
		err := app.Run(c.Context(), "q")
		if err == nil || !strings.Contains(err.Error(), `no processor "q"`) || !strings.Contains(err.Error(), "items/p") {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestReadySaysWhatIsMissing(t *testing.T) {
	cluster(t, 4, ignoreAll, nil, func(c *runneltest.Cluster, _ func(...int)) {
		app := runnel.New("contract", c.Options("b"))
		if err := app.Ready(); !errors.Is(err, runnel.ErrNotReady) || !strings.Contains(err.Error(), "does not run") {
			t.Errorf("before Run: %v", err)
		}
		w := ready(c, "a")
		if err := w.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := w.App().Ready(); !errors.Is(err, runnel.ErrNotReady) {
			t.Errorf("after Run: %v", err)
		}
		if err := w.App().Run(c.Context()); !errors.Is(err, runnel.ErrClosed) {
			t.Errorf("Run after Close: %v", err)
		}
	})
}

func TestReadyNamesWhatIsNotOwnedYet(t *testing.T) {
	cluster(t, 4, ignoreAll, nil, func(c *runneltest.Cluster, _ func(...int)) {
		c.Redis().Set(c.Context(), "__lock:contract.items.p.2", strings.Repeat("x", 16)+":0000000000000001", 5*time.Second)
		w := c.Start("a")
		want := "owns partitions 0-1 3 of the assigned 0-3"
		c.Wait(func() bool { err := w.App().Ready(); return err != nil && strings.Contains(err.Error(), want) })
		if err := w.App().Ready(); !errors.Is(err, runnel.ErrNotReady) {
			t.Errorf("while another owner holds a partition: %v", err)
		}
		c.Wait(func() bool { return w.App().Ready() == nil })
		if left := c.Redis().Get(c.Context(), "__lock:contract.items.p.2").Val(); strings.HasPrefix(left, strings.Repeat("x", 16)) {
			t.Errorf("ready while the lock of partition 2 is %q", left)
		}
	})
}

func TestASharedClientIsNeverClosed(t *testing.T) {
	cluster(t, 1, ignoreAll, nil, func(c *runneltest.Cluster, _ func(...int)) {
		opts := c.Options("b")
		app := runnel.New("contract", opts)
		runnel.NewStream(app, "items", func(item) string { return "" }, &runnel.StreamOptions{Partitions: 1}).Process("p", ignoreAll, nil)
		ctx, cancel := context.WithTimeout(c.Context(), time.Second)
		defer cancel()
		if err := errors.Join(app.Run(ctx), app.Close(), app.Close()); err != nil {
			t.Error(err)
		}
		if err := opts.Redis.Ping(c.Context()).Err(); err != nil {
			t.Errorf("the shared client: %v", err)
		}
	})
}

// processorOf is a processor as its worker sees it, everything resolved.
func processorOf(t *testing.T, app *runnel.App) *worker.Processor {
	t.Helper()
	all, err := appview.Of(app).Processors()
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// While a worker is being stopped Ready reports that it drains, not what its executors
// lack because of that.
func TestReadyTellsFromTheFirstMomentThatItDrains(t *testing.T) {
	t.Parallel()
	cluster(t, 4, ignoreAll, nil, func(c *runneltest.Cluster, _ func(...int)) {
		for n := range 50 {
			w := ready(c, fmt.Sprint("w", n))
			first := make(chan error)
			go func() {
				for {
					if err := w.App().Ready(); err != nil {
						first <- err
						return
					}
					runtime.Gosched()
				}
			}()
			stopped := make(chan error, 1)
			go func() { stopped <- w.Stop() }()
			if err := <-first; !errors.Is(err, runnel.ErrNotReady) || !strings.HasSuffix(err.Error(), "draining") {
				t.Errorf("stop %d: %v", n+1, err)
			}
			if err := <-stopped; err != nil {
				t.Error(err)
			}
			if t.Failed() {
				return
			}
		}
	})
}

// Run with names runs those processors and no others.
func TestRunRunsTheProcessorsThatAreNamed(t *testing.T) {
	for _, tt := range []struct {
		names []string
		want  string
	}{
		{nil, "items/p items/q other/p"},
		{[]string{"p"}, "items/p other/p"},
		{[]string{"items/p"}, "items/p"},
		{[]string{"items/q", "other/p", "items/q"}, "items/q other/p"},
	} {
		var n notes
		cluster(t, 1, ignoreAll, nil, func(c *runneltest.Cluster, _ func(...int)) {
			app := runnel.New("named", c.Options("a"))
			defer app.Close()
			one := &runnel.StreamOptions{Partitions: 1}
			for stream, processors := range map[string][]string{"items": {"p", "q"}, "other": {"p"}} {
				s := runnel.NewStream(app, stream, keyOfItem, one)
				for _, p := range processors {
					s.Process(p, runnel.Each(func(context.Context, *runnel.Event, item) error { n.add(stream + "/" + p); return nil }), nil)
				}
				if err := s.Send(c.Context(), item{1}); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(c.Context(), 10*time.Second)
			defer cancel()
			if err := app.Run(ctx, tt.names...); err != nil {
				t.Error(err)
			}
		})
		got := n.all()
		slices.Sort(got)
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("Run%q ran %s, want %s", tt.names, s, tt.want)
		}
	}
}

// Reads that block go through connections of our own: a shared client with a
// single one stays free.
func TestASharedClientIsNotBlocked(t *testing.T) {
	srv := redistest.Start(t)
	shared := redis.NewClient(&redis.Options{Addr: srv.Addr(), PoolSize: 1})
	defer shared.Close()
	app := runnel.New("contract", &runnel.Options{Redis: shared, Logger: slog.New(slog.DiscardHandler)})
	runnel.NewStream(app, "items", keyOfItem, &runnel.StreamOptions{Partitions: 2}).Process("p", ignoreAll, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx) }()
	rdb := srv.Client(t)
	redistest.Eventually(t, "a blocked read", func() bool {
		return app.Ready() == nil && strings.Contains(rdb.Info(t.Context(), "clients").Val(), "blocked_clients:2") // one of the partitions, one of the control streams
	})
	for range 20 {
		quick, over := context.WithTimeout(t.Context(), time.Second)
		if err := shared.Ping(quick).Err(); err != nil {
			t.Errorf("the shared client while a read blocks: %v", err)
		}
		over()
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := app.Close(); err != nil {
		t.Error(err)
	}
	// What we opened is closed; what is left is the shared client and this test's.
	redistest.Eventually(t, "our connections are closed", func() bool {
		return strings.Count(rdb.ClientList(t.Context()).Val(), "\n") == 2
	})
	if err := shared.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the shared client after Close: %v", err)
	}
}
