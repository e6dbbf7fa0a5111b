package webhook_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/buses"
	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
	"github.com/runnel-go/runnel/webhook"
)

// runBus runs a worker with a bus, whose receivers are on the loopback, until the test ends.
func runBus(t *testing.T, addr string, opts *webhook.Options) *webhook.Bus {
	t.Helper()
	app := runnel.New("shop", &runnel.Options{RedisURL: "redis://" + addr, Logger: slog.New(slog.DiscardHandler)})
	opts.AllowHTTP, opts.AllowAddresses = true, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	bus := webhook.New(app, "bus", opts)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return bus
}

// look returns the subscribers of the bus as operators see them.
func look(t *testing.T, rdb *redis.Client, partitions int) (all []*buses.SubscriberState) {
	t.Helper()
	client, err := store.Open(redisconn.Options{Redis: rdb, Keys: keys.Keys{App: "shop", Layout: keys.Standalone}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	all, err = buses.Subscribers(t.Context(), iwebhook.New(client, "bus"), partitions)
	for _, s := range all {
		err = cmp.Or(err, s.Err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// One dead subscriber and one that is not, and a server that may not use more than a little: publishing never fails, and only the dead one
// misses anything, which is counted.
func TestMemoryThatIsShort(t *testing.T) {
	tier.Slow(t)
	tier.Sequential(t)
	server := redistest.Start(t)
	var had, attempts atomic.Int64
	receiver := httptest.NewServer(webhook.Receive(webhook.ReceiveOptions{}, func(_ context.Context, b *webhook.Batch) error {
		had.Add(int64(len(b.Events)))
		return nil
	}))
	defer receiver.Close()
	dead := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		attempts.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer dead.Close()
	bus := runBus(t, server.Addr(), &webhook.Options{Partitions: 2, MaxMemory: 30 << 20, MinFree: 4 << 20})
	ctx := t.Context()
	for client, url := range map[string]string{"mail": receiver.URL, "gone": dead.URL} {
		if err := bus.Subscribe(ctx, webhook.Subscription{Client: client, Callback: url, Topics: []string{"orders"}, Timeout: -1}); err != nil {
			t.Fatal(err)
		}
	}
	published := int64(0)
	data := strings.Repeat("x", 4000)
	removed := func() int64 {
		topics, err := bus.Topics(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return topics[0].Events - topics[0].Length
	}
	for published < 10_000 { // 40 MB
		for range 500 {
			_, err := bus.Publish(ctx, "shop", webhook.Event{Topic: "orders", Type: webhook.Update, URL: fmt.Sprint("https://x/", published), Data: data})
			if err != nil {
				t.Fatal(err)
			}
			published++
		}
		redistest.Eventually(t, "delivered", func() bool { return had.Load() == published }) // or it would be far behind, too
	}
	redistest.Eventually(t, "removed", func() bool { return removed() > 0 })
	redistest.Eventually(t, "delivered", func() bool { return had.Load() == published })
	if attempts.Load() == 0 {
		t.Error("the dead one was never tried")
	}
	figures := map[string]delivery.Figures{}
	rdb := server.Client(t)
	redistest.Eventually(t, "counted what was removed", func() bool {
		for _, s := range look(t, rdb, 2) {
			figures[s.Subscriber] = delivery.Figures{Sent: s.Sent, Queued: s.Queued, Dropped: s.Dropped, Dead: s.Dead, Failed: s.Failed}
		}
		f, gone := figures["gone"], removed() // but for a batch that the dead one has begun
		return f.Dropped < gone && f.Dropped >= gone-100 && f.Queued == published-f.Dropped
	})
	if figures["mail"] != (delivery.Figures{Sent: published}) {
		t.Errorf("mail: %+v of %d", figures["mail"], published)
	}
}
