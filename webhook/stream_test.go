package webhook_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
	"github.com/runnel-go/runnel/webhook"
)

// A processor in Go gets what subscribers get, in order, and an ordinary send is refused.
func TestProcessorsOfTopics(t *testing.T) {
	var mu sync.Mutex
	var had []string
	runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
		app := runnel.New("shop", o)
		bus := webhook.New(app, "bus", &webhook.Options{Partitions: 1})
		bus.Stream("orders").Process("index", func(_ context.Context, events *runnel.Events[webhook.Event]) error {
			for e := range events.Records() {
				var data struct{ Total int }
				if err := e.Decode(&data); err != nil || data.Total != 7 || e.Topic != "orders" || e.Type != webhook.Update || time.Since(e.T) > time.Minute {
					t.Errorf("got %+v, %v", e, err)
				}
				mu.Lock()
				had = append(had, strings.TrimPrefix(e.URL, "https://x/"))
				mu.Unlock()
			}
			return nil
		}, nil)
		return app
	}, func(c *runneltest.Cluster) {
		c.Start("one")
		app := runnel.New("shop", c.Options("outside"))
		defer app.Close()
		bus := webhook.New(app, "bus", &webhook.Options{Partitions: 1})
		stream := bus.Stream("orders")
		for _, url := range numbers(0, 30) {
			if _, err := bus.Publish(c.Context(), "shop", webhook.Event{Topic: "orders", Type: webhook.Update, URL: "https://x/" + url, Data: map[string]int{"total": 7}}); err != nil {
				t.Fatal(err)
			}
		}
		c.Wait(func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(had) >= 30
		})
		if !slices.Equal(had, numbers(0, 30)) {
			t.Errorf("got %v", had)
		}
		if err := stream.Send(c.Context(), webhook.Event{Topic: "orders"}); err == nil || !strings.Contains(err.Error(), "publish") {
			t.Errorf("an ordinary send: got %v", err)
		}
	})
}

// What would not arrive as it was given is refused before anything is appended.
func TestEventsThatJSONWouldChange(t *testing.T) {
	inRig(t, nil, func(r *rig) {
		_, err := r.bus.Publish(r.c.Context(), "shop", webhook.Event{Topic: "orders", Type: webhook.Update, URL: "https://x/\xff"})
		if err == nil || !strings.Contains(err.Error(), "url is not UTF-8") {
			t.Errorf("got %v", err)
		}
		if n := r.c.Redis().Exists(r.c.Context(), "__num:shop.bus.orders.0", "__whtopic:shop.bus.0").Val(); n != 0 {
			t.Errorf("%d keys are there", n)
		}
	})
}
