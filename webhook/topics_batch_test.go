package webhook_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/webhook"
)

// A batch has events of all topics of a subscriber, and the events of each topic are in order within batches and from batch to batch.
func TestTopicsShareBatches(t *testing.T) {
	tier.Server(t)
	h := newHooks(t)
	bus := runBus(t, redistest.Start(t).Addr(), &webhook.Options{Partitions: 2})
	topics := []string{"orders", "users"}
	if err := bus.Subscribe(t.Context(), webhook.Subscription{Client: "mail", Callback: h.at("mail"), Topics: topics, Max: 6, Timeout: time.Hour}); err != nil {
		t.Fatal(err)
	}
	event := func(topic string, n int) webhook.Event {
		return webhook.Event{Topic: topic, Type: webhook.Update, URL: fmt.Sprintf("https://x/%s/%d", topic, n)}
	}
	publish := func(events ...webhook.Event) {
		if _, err := bus.Publish(t.Context(), "shop", events...); err != nil {
			t.Error(err)
		}
	}
	const rounds, each = 20, 402
	for i := range rounds {
		var events []webhook.Event
		for k := range 3 {
			events = append(events, event("orders", 3*i+k+1), event("users", 3*i+k+1))
		}
		publish(events...)
		redistest.Eventually(t, "a batch", func() bool { return len(h.batches("mail")) > i })
		count := map[string]int{}
		for _, one := range h.batches("mail")[i] {
			count[one.topic]++
		}
		if count["orders"] != 3 || count["users"] != 3 {
			t.Fatalf("batch %d has %v", i, count)
		}
	}
	var publishing sync.WaitGroup
	for _, topic := range topics {
		publishing.Go(func() {
			for n := 0; n < each; {
				var events []webhook.Event
				for range min(1+n%5, each-n) {
					n++
					events = append(events, event(topic, 3*rounds+n))
				}
				publish(events...)
			}
		})
	}
	publishing.Wait()
	for _, topic := range topics {
		h.exactly("mail", topic, 3*rounds+each)
	}
	if batches := h.batches("mail"); slices.ContainsFunc(batches, func(b []item) bool { return len(b) != 6 }) {
		t.Errorf("not all of %d batches are complete", len(batches))
	}
}
