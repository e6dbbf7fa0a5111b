package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/webhook"
	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// A request is one as it has reached a receiver.
type request struct {
	header http.Header
	body   []byte
}

// deliveries starts a worker with a bus, and a receiver. It returns the bus, the receiver's URL, and what comes there.
func deliveries(t *testing.T) (*webhook.Bus, string, <-chan request) {
	t.Helper()
	came := make(chan request, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the sender went away
		}
		came <- request{r.Header.Clone(), body}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(receiver.Close)
	app := runnel.New("shop", &runnel.Options{RedisURL: redistest.Start(t).URL(), Logger: slog.New(slog.DiscardHandler)})
	bus := webhook.New(app, "bus", &webhook.Options{
		Partitions: 1, JoinDelay: time.Millisecond, AllowHTTP: true, AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		SealKeys: [][]byte{[]byte(strings.Repeat("k", 32))},
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return bus, receiver.URL, came
}

// verify wants the library to accept a request with each of some secrets, and to refuse it with another one, and once it is changed.
func (r request) verify(t *testing.T, secrets ...string) {
	t.Helper()
	check := func(secret string, body []byte, h http.Header) error {
		w, err := standard.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		return w.Verify(body, h)
	}
	for i, secret := range secrets {
		if err := check(secret, r.body, r.header); err != nil {
			t.Errorf("secret %d: %v\n%v", i, err, r.header)
		}
		longer, other := append([]byte(" "), r.body...), r.header.Clone()
		other.Set(standard.HeaderWebhookID, "msg_other")
		if check(secret, longer, r.header) == nil || check(secret, r.body, other) == nil {
			t.Errorf("secret %d: a batch that was changed is verified", i)
		}
	}
	if check(webhook.NewSecret(), r.body, r.header) == nil {
		t.Error("a batch is verified with a secret that it was not signed with")
	}
	if n := len(strings.Fields(r.header.Get(standard.HeaderWebhookSignature))); n != len(secrets) {
		t.Errorf("%d signatures, want %d", n, len(secrets))
	}
	if id := r.header.Get(standard.HeaderWebhookID); id == "" || id != r.header.Get("Runnel-Batch") {
		t.Errorf("the ID is %q", id)
	}
}

// What is delivered in either format is verified by the library, while a secret is replaced with both.
func TestTheLibraryVerifiesDeliveries(t *testing.T) {
	tier.Server(t)
	for name, tt := range map[string]struct {
		format webhook.Format
		sizes  []int // events of each request
	}{"array": {webhook.Array, []int{3}}, "single": {webhook.Single, []int{1, 1, 1}}} {
		t.Run(name, func(t *testing.T) {
			bus, url, came := deliveries(t)
			old, young := webhook.NewSecret(), webhook.NewSecret()
			wants := webhook.Subscription{Client: "mail", Callback: url, Topics: []string{"orders"}, Secret: old, Format: tt.format, Max: 3, Timeout: time.Hour}
			if tt.format == webhook.Single {
				wants.Max = 1
			}
			if err := bus.Subscribe(t.Context(), wants); err != nil {
				t.Fatal(err)
			}
			deliver := func(secrets ...string) {
				t.Helper()
				var events []webhook.Event
				for i := range 3 {
					events = append(events, webhook.Event{Topic: "orders", Type: webhook.Update, URL: fmt.Sprint("https://shop.example.com/orders/ä", i), Data: map[string]int{"n": i}})
				}
				if _, err := bus.Publish(t.Context(), "shop", events...); err != nil {
					t.Fatal(err)
				}
				for _, n := range tt.sizes {
					select {
					case r := <-came:
						if got := eventsOf(t, r.body); got != n {
							t.Errorf("%d events, want %d: %s", got, n, r.body)
						}
						r.verify(t, secrets...)
					case <-time.After(redistest.Patience):
						t.Fatal("nothing comes")
					}
				}
			}
			deliver(old)
			if err := bus.SetSecret(t.Context(), "mail", young); err != nil {
				t.Fatal(err)
			}
			deliver(young, old)
		})
	}
}

// eventsOf returns how many events a body has.
func eventsOf(t *testing.T, body []byte) int {
	t.Helper()
	var one struct{ URL string }
	if json.Unmarshal(body, &one) == nil && one.URL != "" {
		return 1
	}
	var all []struct{ URL string }
	if err := json.Unmarshal(body, &all); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return len(all)
}
