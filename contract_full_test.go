package runnel_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/runneltest"
)

// A batch that may not grow any more is yielded: waiting would not help.
func TestTakeYieldsWhatFillsTheBuffer(t *testing.T) {
	var mu sync.Mutex
	var sizes []int
	large := func(o *runnel.Options) (*runnel.App, *runnel.Stream[[]byte]) {
		app := runnel.New("contract", o)
		return app, runnel.NewStream(app, "large", func([]byte) string { return "" }, &runnel.StreamOptions{Partitions: 1})
	}
	runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
		app, s := large(o)
		s.Process("p", runnel.EachBatch(100, time.Hour, func(_ context.Context, _ []*runnel.Event, records [][]byte) error {
			mu.Lock()
			defer mu.Unlock()
			sizes = append(sizes, len(records))
			return nil
		}), &runnel.ProcessorOptions{PrefetchBytes: 350_000})
		return app
	}, func(c *runneltest.Cluster) {
		ready(c, "a")
		app, s := large(c.Options("sender"))
		defer app.Close()
		for n := range 9 {
			if err := s.Send(c.Context(), bytes.Repeat([]byte{byte(n)}, 100_000)); err != nil {
				t.Fatal(err)
			}
		}
		c.Sleep(time.Minute)
	})
	total := 0
	for _, n := range sizes {
		total += n
		if n < 1 || n > 3 {
			t.Errorf("a batch of %d in a buffer for 3", n)
		}
	}
	if total < 7 {
		t.Errorf("yielded %v in a minute", sizes)
	}
}

// A batch that nearly fills the buffer must not wait for room that only it could
// make: single events, one after the other, fill it to the last.
func TestTakeFillsUpOneByOne(t *testing.T) {
	for _, n := range []int{10, 256, 300} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			taking(t, n, time.Hour, nil, func(c *runneltest.Cluster, b *batches, send func(...int)) {
				var want []int
				for i := range n {
					if want = append(want, i); i%3 == 0 {
						c.Sleep(time.Millisecond)
					}
					send(i)
				}
				c.Sleep(time.Second)
				b.want(t, [][]int{want})
			})
		})
	}
}

// A sender under Block goes on when there is room, however long that took.
func TestBlockWaitsAsLongAsItTakes(t *testing.T) {
	declare := func(o *runnel.Options) (*runnel.App, *runnel.Stream[item]) {
		app := runnel.New("contract", o)
		return app, runnel.NewStream(app, "items", keyOfItem, &runnel.StreamOptions{Partitions: 1, MaxLen: 4, Overflow: runnel.Block})
	}
	runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
		app, s := declare(o)
		s.Process("p", runnel.Each(func(context.Context, *runnel.Event, item) error { return nil }), nil)
		return app
	}, func(c *runneltest.Cluster) {
		ready(c, "a")
		app, s := declare(c.Options("sender"))
		defer app.Close()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(admin.New(app).Pause(c.Context(), admin.AppScope(), nil))
		must(admin.New(app).Wait(c.Context(), admin.AppScope()))
		must(s.Send(c.Context(), items(1, 2, 3, 4)...))
		ctx, cancel := context.WithTimeout(c.Context(), 10*time.Minute)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- s.Send(ctx, item{5}) }()
		c.Sleep(time.Minute)
		must(admin.New(app).Resume(c.Context(), admin.AppScope()))
		began := time.Now()
		if err := <-done; err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("%v after there was room: %v", time.Since(began), err)
		}
	})
}
