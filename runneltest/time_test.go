package runneltest_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/runneltest"
	"github.com/runnel-go/runnel/window"
)

// A window was told where no event came; a worker is restarted, and an event of that time is retried: the partition's time has not gone
// back, and no window is told twice.
func TestTimeDoesNotGoBackWithANewOwner(t *testing.T) {
	for _, kill := range []bool{false, true} {
		var mu sync.Mutex
		var told []string
		bad := true
		declare := func(o *runnel.Options) (*runnel.App, *runnel.Stream[visit]) {
			o.Logger = slog.New(slog.DiscardHandler)
			app := runnel.New("site", o)
			in := runnel.NewStream(app, "in", func(v visit) string { return v.Key }, &runnel.StreamOptions{Partitions: 1, Codec: codec.JSON})
			window.Tumbling(in, "w", time.Minute, func(n int, v visit) int {
				mu.Lock()
				defer mu.Unlock()
				if v.Bad && bad {
					panic("bad")
				}
				return n + v.Count
			}, func(ctx context.Context, w window.Window[int]) error {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, fmt.Sprint(w.Key, " ", w.Start.UTC().Format("04:05")))
				return nil
			}, &runnel.ProcessorOptions{Lease: time.Second, Retry: &runnel.Retry{Max: 1}})
			return app, in
		}
		runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
			app, _ := declare(o)
			return app
		}, func(c *runneltest.Cluster) {
			app, in := declare(c.Options("producer"))
			defer app.Close()
			a := c.Start("a")
			c.Wait(func() bool { return a.App().Ready() == nil })
			if err := in.Send(c.Context(), visit{Key: "ada", Count: 1}, visit{Key: "ada", Count: 7, Bad: true}); err != nil {
				t.Fatal(err)
			}
			c.Sleep(2 * time.Minute)
			if kill {
				a.Kill()
			} else if err := a.Stop(); err != nil {
				t.Error(err)
			}
			mu.Lock()
			bad = false
			mu.Unlock()
			c.Start("b")
			c.Sleep(10 * time.Second)
			dead := admin.New(app).DeadLetters("in", "w")
			list, _ := dead.List(c.Context(), nil)
			if done, err := dead.Retry(c.Context(), list); err != nil || len(done) != 1 {
				t.Error(done, err)
			}
			c.Sleep(2 * time.Minute)
		})
		if slices.Sort(told); len(told) != 2 || len(slices.Compact(told)) != 2 {
			t.Errorf("told %v", told)
		}
	}
}
