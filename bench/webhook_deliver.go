package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/runnel-go/runnel/webhook"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// busOptions are those of a bus whose receivers are in the process.
func (t Task) busOptions() *webhook.Options {
	return &webhook.Options{Partitions: t.Partitions, MaxLen: endless, AllowHTTP: true, AllowAddresses: loopback}
}

// busEvents are so many events of a topic, from a number on.
func busEvents(topic string, first, n int) []webhook.Event {
	events := make([]webhook.Event, n)
	for i := range events {
		events[i] = webhook.Event{Topic: topic, Type: webhook.Update, URL: fmt.Sprintf("https://shop.example.com/%s/%032d", topic, first+i)}
	}
	return events
}

// sink answers batches, and counts them.
func sink(m *meter) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNoContent)
		m.add(1)
	}))
}

// runnelWebhook delivers the backlog of a topic to so many subscribers.
func runnelWebhook(ctx context.Context, t Task) (Result, error) {
	app := newApp(t)
	defer app.Close()
	m := newMeter(t.Events)
	m.skip = int64(t.Events / 10)
	receiver := sink(m)
	defer receiver.Close()
	bus := webhook.New(app, t.Stream, t.busOptions())
	for i := range t.Readers {
		err := bus.Subscribe(ctx, webhook.Subscription{Client: fmt.Sprint("client", i), Callback: receiver.URL, Topics: []string{"orders"}, Max: t.Count, Timeout: -1})
		if err != nil {
			return nil, err
		}
	}
	for at, events := 0, t.Events/t.Readers*t.Count; at < events; at += 500 {
		if _, err := bus.Publish(ctx, "shop", busEvents("orders", at, min(500, events-at))...); err != nil {
			return nil, err
		}
	}
	if err := runUntil(ctx, app, m.wait); err != nil {
		return nil, err
	}
	return m.result(), nil
}

// post posts a body and reads the answer.
func post(ctx context.Context, client *http.Transport, url string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.RoundTrip(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.Body.Close()
}

// storedWebhook does by hand what has to be done at least: each loop reads a batch from Redis, posts it, and stores its position.
func storedWebhook(ctx context.Context, t Task, rdb *redis.Client) (Result, error) {
	m := newMeter(t.Events)
	m.skip = int64(t.Events / 10)
	receiver := sink(m)
	defer receiver.Close()
	pipe := rdb.Pipeline()
	for i, e := range busEvents("orders", 0, t.Events/t.Readers*t.Count) {
		pipe.XAdd(ctx, &redis.XAddArgs{Stream: t.Run, Values: []string{"data", fmt.Sprintf(`{"topic":%q,"type":%q,"url":%q,"t":1767225600000}`, e.Topic, e.Type, e.URL)}})
		if i%1000 == 999 {
			if _, err := pipe.Exec(ctx); err != nil {
				return nil, err
			}
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	client := &http.Transport{DialContext: (&net.Dialer{}).DialContext, MaxIdleConns: 256, MaxIdleConnsPerHost: 32, DisableCompression: true}
	defer client.CloseIdleConnections()
	g, ctx := errgroup.WithContext(ctx)
	for i := range t.Readers {
		g.Go(func() error {
			for at, n := "-", 0; n < t.Events/t.Readers; n++ {
				entries, err := rdb.XRangeN(ctx, t.Run, at, "+", int64(t.Count)).Result()
				if err != nil {
					return err
				}
				var body []byte
				for _, e := range entries {
					body = append(append(body, ','), e.Values["data"].(string)...)
				}
				body[0] = '['
				if err := post(ctx, client, receiver.URL, append(body, ']')); err != nil {
					return err
				}
				at = "(" + entries[len(entries)-1].ID
				if err := rdb.HSet(ctx, t.Run+"-at", fmt.Sprint(i), at).Err(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return m.result(), nil
}

// bareWebhook posts the same bodies by hand, in a loop for each subscriber.
func bareWebhook(ctx context.Context, t Task, _ *redis.Client) (Result, error) {
	m := newMeter(t.Events)
	m.skip = int64(t.Events / 10)
	receiver := sink(m)
	defer receiver.Close()
	var texts []string
	for _, e := range busEvents("orders", 0, t.Count) {
		texts = append(texts, fmt.Sprintf(`{"topic":%q,"type":%q,"url":%q,"t":1767225600000}`, e.Topic, e.Type, e.URL))
	}
	body := []byte("[" + strings.Join(texts, ",") + "]")
	client := &http.Transport{DialContext: (&net.Dialer{}).DialContext, MaxIdleConns: 256, MaxIdleConnsPerHost: 32, DisableCompression: true}
	defer client.CloseIdleConnections()
	g, ctx := errgroup.WithContext(ctx)
	for range t.Readers {
		g.Go(func() error {
			for range t.Events / t.Readers {
				if err := post(ctx, client, receiver.URL, body); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return m.result(), nil
}
