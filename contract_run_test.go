package runnel_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/worker"
	"github.com/runnel-go/runnel/runneltest"
)

var ignoreAll = runnel.Each(func(context.Context, *runnel.Event, item) error { return nil })

// unreachable is an app whose connections go nowhere.
func unreachable(dial func(ctx context.Context) (net.Conn, error)) (*runnel.App, *redis.Client) {
	rdb := redis.NewClient(&redis.Options{
		Addr:   "127.0.0.1:6390",
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
	})
	app := runnel.New("contract", &runnel.Options{Redis: rdb})
	runnel.NewStream(app, "items", keyOfItem, nil).Process("p", ignoreAll, nil)
	return app, rdb
}

func TestRunWithoutRedisIsAnErrorAfterFiveSeconds(t *testing.T) {
	for name, dial := range map[string]func(context.Context) (net.Conn, error){
		"refused": func(context.Context) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		},
		"no answer": func(ctx context.Context) (net.Conn, error) {
			<-ctx.Done()
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				app, rdb := unreachable(dial)
				began := time.Now()
				err := app.Run(t.Context())
				if d := time.Since(began); d < 4500*time.Millisecond || d > 5500*time.Millisecond {
					t.Errorf("gave up after %v", d)
				}
				if err == nil || !strings.Contains(err.Error(), "127.0.0.1:6390") || !strings.Contains(err.Error(), "app contract") {
					t.Errorf("error %v", err)
				}
				if err := errors.Join(app.Close(), rdb.Close()); err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Second) // the pools notice that they are closed
			})
		})
	}
}

func TestRunThatIsStoppedBeforeItReachedRedisReturnsNil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app, rdb := unreachable(func(ctx context.Context) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := app.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
		app.Close()
		rdb.Close()
		time.Sleep(10 * time.Second)
	})
}

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

func TestRunRetriesForEverOnceItHasStarted(t *testing.T) {
	var n notes
	fn := runnel.Each(func(_ context.Context, _ *runnel.Event, i item) error { n.add("done"); return nil })
	cluster(t, 1, fn, nil, func(c *runneltest.Cluster, send func(...int)) {
		w := ready(c, "a")
		w.Isolate(time.Hour)
		c.Sleep(time.Hour - time.Second)
		send(1)
		c.Sleep(time.Minute)
		if !n.has("done") {
			t.Error("nothing processed a minute after Redis came back")
		}
		if err := w.Err(); err != nil {
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
