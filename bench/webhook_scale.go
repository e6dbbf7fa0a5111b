package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/webhook"
)

const (
	busTopics  = 100
	deadOfMany = 100 // subscribers: half of them refuse, half hang
	busWait    = 2 * time.Second
)

// subscribeMany subscribes so many clients, each to one topic. With Each 100 of them are dead.
func subscribeMany(ctx context.Context, t Task, bus *webhook.Bus, healthy, refuses, hangs string) error {
	var wg sync.WaitGroup
	errs := make(chan error, t.Readers)
	for part := range 32 {
		wg.Go(func() {
			for i := part; i < t.Readers; i += 32 {
				callback := healthy
				if dead := i % (t.Readers / deadOfMany); t.Each && dead == 0 {
					callback = []string{refuses, hangs}[i/(t.Readers/deadOfMany)%2]
				}
				errs <- bus.Subscribe(ctx, webhook.Subscription{Client: fmt.Sprint("client", i), Callback: callback, Topics: []string{topicOf(i)}, Timeout: busWait})
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// topicOf is one of a hundred topics, whose names have letters only.
func topicOf(i int) string {
	return "t_" + string(rune('a'+i%busTopics/10)) + string(rune('a'+i%10))
}

// A lateness notes how long after its time a batch came.
type lateness struct {
	mu    sync.Mutex
	begin time.Time
	late  []time.Duration
}

func (l *lateness) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.WriteHeader(http.StatusNoContent)
	var events []struct{ T int64 }
	if json.Unmarshal(body, &events) != nil || len(events) == 0 {
		return
	}
	first := time.UnixMilli(events[0].T)
	l.mu.Lock()
	defer l.mu.Unlock()
	if first.After(l.begin) {
		l.late = append(l.late, time.Since(first)-busWait)
	}
}

// runnelWebhookScale publishes at a rate to ten thousand subscribers, and says how late the batches of the healthy ones are.
func runnelWebhookScale(ctx context.Context, t Task) (Result, error) {
	app := newApp(t)
	defer app.Close()
	l := &lateness{begin: time.Now().Add(time.Hour)}
	healthy := httptest.NewServer(l)
	defer healthy.Close()
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
	defer refuses.Close()
	hanging := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-hanging:
		}
	}))
	defer hangs.Close()
	defer close(hanging)
	opts := t.busOptions()
	opts.PerHost = 256 // one host stands for many here
	bus := webhook.New(app, t.Stream, opts)
	if err := subscribeMany(ctx, t, bus, healthy.URL, refuses.URL, hangs.URL); err != nil {
		return nil, err
	}
	err := runUntil(ctx, app, func(ctx context.Context) error {
		if err := awaitReady(ctx, app); err != nil {
			return err
		}
		began, every := time.Now(), time.Second/time.Duration(t.Rate)
		for i := 0; time.Since(began) < t.Length; i++ {
			if _, err := bus.Publish(ctx, "shop", webhook.Event{Topic: topicOf(i), Type: webhook.Update, URL: fmt.Sprintf("https://shop.example.com/orders/%d", i)}); err != nil {
				return err
			}
			l.mu.Lock()
			if l.begin.After(began.Add(time.Hour-time.Minute)) && time.Since(began) > t.Length/2 { // the dead ones have had several attempts
				l.begin = time.Now()
			}
			l.mu.Unlock()
			if err := rest(ctx, time.Until(began.Add(time.Duration(i+1)*every))); err != nil {
				return err
			}
		}
		return rest(ctx, busWait)
	})
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.late) == 0 {
		return nil, errors.New("no batch came")
	}
	slices.Sort(l.late)
	at := func(q float64) float64 { return l.late[int(q*float64(len(l.late)-1))].Seconds() * 1e3 }
	return Result{"p50": at(0.5), "p99": at(0.99), "batches": float64(len(l.late))}, nil
}

// idleWebhook measures a worker whose ten thousand subscribers get nothing.
func idleWebhook(ctx context.Context, t Task) (Result, error) {
	if t.Readers > 0 {
		app := newApp(t)
		bus := webhook.New(app, t.Stream, t.busOptions())
		if err := errors.Join(subscribeMany(ctx, t, bus, "http://127.0.0.1:9/", "", ""), app.Close()); err != nil {
			return nil, err
		}
	}
	return t.idle(ctx, func(app *runnel.App) { webhook.New(app, t.Stream, t.busOptions()) })
}
