package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/runnel-go/runnel/webhook"
)

// ingestWebhook has so many clients publish over HTTP, one event in a request.
func ingestWebhook(ctx context.Context, t Task) (Result, error) {
	app := newApp(t)
	defer app.Close()
	bus := webhook.New(app, t.Stream, t.busOptions())
	token, err := bus.AddToken(ctx, "shop")
	if err != nil {
		return nil, err
	}
	return publishAll(ctx, t, bus, token)
}

// ingestBare does it by hand: a handler that knows its token, decodes and checks the event, and adds it.
func ingestBare(ctx context.Context, t Task, rdb *redis.Client) (Result, error) {
	const token = "shop--00000000000000000000000000000000"
	return publishAll(ctx, t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		var e struct{ Type, URL string }
		dec := json.NewDecoder(r.Body)
		dec.DisallowUnknownFields()
		if user != token || dec.Decode(&e) != nil || e.Type == "" || !strings.HasPrefix(e.URL, "https://") {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		payload, err := json.Marshal(map[string]any{"topic": "orders", "type": e.Type, "url": e.URL})
		if err == nil {
			err = rdb.XAdd(r.Context(), &redis.XAddArgs{Stream: t.Run, Values: []any{"data", payload}}).Err()
		}
		if err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}), token)
}

// publishAll posts events to a handler, from so many clients at once.
func publishAll(ctx context.Context, t Task, handler http.Handler, token string) (Result, error) {
	server := httptest.NewServer(handler)
	defer server.Close()
	client := &http.Transport{MaxIdleConns: t.Readers, MaxIdleConnsPerHost: t.Readers, DisableCompression: true}
	defer client.CloseIdleConnections()
	m := newMeter(t.Events)
	m.skip = int64(t.Events / 10)
	g, ctx := errgroup.WithContext(ctx)
	for c := range t.Readers {
		g.Go(func() error {
			for i := range t.Events / t.Readers {
				body := fmt.Sprintf(`{"type":"update","url":"https://shop.example.com/orders/%d-%d"}`, c, i)
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/topics/orders", bytes.NewReader([]byte(body)))
				if err != nil {
					return err
				}
				req.SetBasicAuth(token, "x")
				req.Header.Set("Content-Type", "application/json")
				resp, err := client.RoundTrip(req)
				if err != nil {
					return err
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode != http.StatusNoContent {
					return fmt.Errorf("answered %s", resp.Status)
				}
				m.add(1)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return m.result(), nil
}
