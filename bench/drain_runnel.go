package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/metrics"
	"github.com/runnel-go/runnel/web"
)

// endless is a Size at which nothing is trimmed.
const endless = 1 << 40

// newApp returns an app of a task that logs nothing.
func newApp(t Task, more ...func(*runnel.Options)) *runnel.App {
	o := &runnel.Options{RedisURL: t.URL, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range more {
		f(o)
	}
	return runnel.New(appName, o)
}

func (t Task) stream(app *runnel.App) *runnel.Stream[Order] {
	size := int64(endless)
	if t.Sent {
		size = producedLength
	}
	return runnel.NewStream(app, t.Stream, Order.key, &runnel.StreamOptions{
		Partitions: t.Partitions, Codec: codecNamed(t.Codec), MaxLen: size,
	})
}

// processorOf returns the options of a task's processor.
func processorOf(t Task, start string) *runnel.ProcessorOptions {
	o := &runnel.ProcessorOptions{Reads: runnel.ByGroup, Start: start}
	if t.Loop == "position" {
		o.Reads = runnel.ByPosition
	}
	return o
}

// runnelDrain processes the backlog of a stream from its beginning, as processors
// that never ran, and forgets them.
func runnelDrain(ctx context.Context, t Task) (Result, error) {
	app := newApp(t)
	defer app.Close()
	var names []string
	for i := range max(t.Processors, 1) {
		names = append(names, fmt.Sprint(t.Run, "-", i))
	}
	m, stream := newMeter(t.Events*len(names)), t.stream(app)
	for _, name := range names {
		stream.Process(name, func(_ context.Context, events *runnel.Events[Order]) error {
			t.loop(events, m)
			return nil
		}, processorOf(t, runnel.StartBeginning))
	}
	if t.Watch {
		stop, err := watch(app, t.Stream+"/"+names[0])
		if err != nil {
			return nil, err
		}
		defer stop()
	}
	if err := runUntil(ctx, app, m.wait); err != nil {
		return nil, err
	}
	for _, t.Run = range names {
		if err := forget(ctx, t); err != nil {
			return nil, err
		}
	}
	return m.result(), nil
}

// watch scrapes an app's metrics, at once and every second, and has a page of the
// dashboard open, until stop is called.
func watch(app *runnel.App, processor string) (stop func(), err error) {
	handler := metrics.Handler(app, nil)
	server := httptest.NewServer(web.Handler(app, nil))
	ctx, cancel := context.WithCancel(context.Background())
	page, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/api/live?processor="+processor, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		for began, n := time.Now(), 1; ctx.Err() == nil; n++ {
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil))
			_ = rest(ctx, time.Until(began.Add(time.Duration(n)*time.Second)))
		}
	})
	watching.Go(func() {
		if resp, err := http.DefaultClient.Do(page); err == nil {
			defer resp.Body.Close()
			_, _ = io.Copy(io.Discard, resp.Body) // until ctx ends
		}
	})
	return func() {
		cancel()
		watching.Wait()
		server.Close()
	}, nil
}

// loop handles the events of a partition in the way that the task wants.
func (t Task) loop(events *runnel.Events[Order], m *meter) {
	switch t.Loop {
	case "raw", "position":
		for range events.Raw() {
			m.sleep(t.Work)
			m.add(1)
		}
	case "records":
		for range events.Records() {
			m.sleep(t.Work)
			m.add(1)
		}
	case "take":
		for records := range events.Take(t.Count, 0).Records() {
			m.add(int64(len(records)))
		}
	}
}

// runUntil runs the app until wait returns, and returns when the app has drained.
func runUntil(ctx context.Context, app *runnel.App, wait func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- app.Run(ctx)
		cancel()
	}()
	err := wait(ctx)
	cancel()
	return cmp.Or(<-ended, err)
}

// forget removes what the processor of a task left behind, so that the next one
// finds the server as this one did. It is an error if not all was acked.
func forget(ctx context.Context, t Task) error {
	app := newApp(t)
	defer app.Close()
	gone, err := admin.New(app).RemoveProcessor(ctx, t.Stream, t.Run, &admin.RemoveOptions{Dead: true, Rows: true})
	if err == nil && t.Whole && gone.Lag > 0 {
		err = fmt.Errorf("%d events were not acked", gone.Lag)
	}
	return err
}
