package views

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/metrics"
	"github.com/runnel-go/runnel/web"
)

// Metrics scraped every second and an open dashboard page add at most four requests a second for
// 256 partitions to those of an idle worker.
func TestWatchingAddsFewRequests(t *testing.T) {
	server := redistest.Start(t)
	counter := redistest.CountingDialer(nil)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), Dialer: counter.Dial})
	defer rdb.Close()
	app := runnel.New("shop", &runnel.Options{Redis: rdb, Logger: slog.New(slog.DiscardHandler), Stream: runnel.StreamOptions{Partitions: 256}})
	defer app.Close()
	orders := runnel.NewStream(app, "orders", func(o order) string { return o.Key }, nil)
	orders.Process("printer", func(_ context.Context, events *runnel.Events[order]) error {
		for range events.Raw() {
			continue
		}
		return nil
	}, &runnel.ProcessorOptions{Lease: 5 * time.Minute})
	scraped := metrics.Handler(app, nil)
	page := httptest.NewServer(web.Handler(app, nil))
	defer page.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	redistest.Eventually(t, "ready", func() bool { return app.Ready() == nil }, func() string { return app.Ready().Error() })

	const length = 6 * time.Second
	measure := func() float64 {
		counter.Reset()
		began := time.Now()
		<-time.After(length)
		return float64(counter.Total()) / time.Since(began).Seconds()
	}
	<-time.After(time.Second) // what it still asks after its start
	idle := measure()
	watching, stop := context.WithCancel(ctx)
	samples, done := 0, make(chan struct{})
	go func() {
		defer close(done)
		samples = watchFor(watching, t, page.URL, scraped)
	}()
	<-time.After(time.Second) // the first look asks more
	watched := measure()
	stop()
	<-done
	t.Logf("idle %.1f requests a second, watched %.1f", idle, watched)
	if samples < 2 {
		t.Fatalf("the page was sent %d samples: it did not watch", samples)
	}
	// One more scrape (2) and one more look (4) may fall into the time.
	if most := 4 + 6/length.Seconds(); watched-idle > most {
		t.Errorf("watching added %.1f requests a second, at most %.1f are expected", watched-idle, most)
	}
}

// watchFor scrapes every second, with a page open, until ctx ends. It returns the number of samples
// sent to the page.
func watchFor(ctx context.Context, t *testing.T, url string, metrics http.Handler) (samples int) {
	var page sync.WaitGroup
	page.Go(func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/live?processor=orders/printer", nil)
		if err != nil {
			t.Error(err)
			return
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body) // until ctx ends
		samples = strings.Count(string(text), "event: sample")
	})
	for tick := time.Tick(time.Second); ctx.Err() == nil; {
		metrics.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil))
		select {
		case <-ctx.Done():
		case <-tick:
		}
	}
	page.Wait()
	return samples
}
