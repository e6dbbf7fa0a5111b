package browsertest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/web"
	"github.com/runnel-go/runnel/webhook"
)

// posted runs a worker over a bus with a subscriber that takes all, and one whose receiver refuses with a hostile text.
func posted(t *testing.T, s *shop) *runnel.App {
	app := runnel.New("post", &runnel.Options{RedisURL: s.redis.URL(), Logger: discard()})
	bus := webhook.New(app, "bus", &webhook.Options{Partitions: 3, AllowHTTP: true, AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/T0K3N/bad" {
			http.Error(w, evil, http.StatusTeapot)
		}
	}))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		receiver.Close()
		app.Close()
	})
	for name, topics := range map[string][]string{"good": {"orders", "customers"}, "bad": {"orders"}} {
		s.must(bus.Subscribe(ctx, webhook.Subscription{Client: name, Callback: receiver.URL + "/T0K3N/" + name, Topics: topics, Timeout: -1, Secret: webhook.NewSecret()}))
	}
	for n := range 7 {
		_, err := bus.Publish(ctx, "shop", webhook.Event{Topic: "orders", Type: webhook.Update, URL: fmt.Sprintf("https://shop.example.com/orders/%d", n)})
		s.must(err)
	}
	return app
}

func TestThePageOfWebhooks(t *testing.T) {
	s, b := newShop(t), newBrowser(t)
	app := posted(t, s)
	server := httptest.NewServer(web.Handler(app, &web.Options{Every: 500 * time.Millisecond, AllowActions: true, Token: token}))
	defer server.Config.Shutdown(t.Context()) // ends its streams
	b.open(server.URL + "/#/webhook/bus/bad")
	cell := func(subscriber, label string) string {
		return fmt.Sprintf(`document.querySelector('[data-subscriber="bus/%s"] [data-label="%s"]')?.textContent`, subscriber, label)
	}
	b.await("what is delivered", cell("good", "sent")+` === "7"`)
	b.await("what waits", cell("bad", "queued")+` === "7"`)
	b.await("that one fails", cell("bad", "state")+` === "waiting"`)
	b.await("the one that is behind is first", `document.querySelector("[data-subscriber]")?.dataset.subscriber === "bus/bad"`)
	b.await("the topic", `document.querySelector('[data-topic="orders"]')?.textContent.includes("shop")`)
	b.await("the open batch", `document.querySelector("[data-one]")?.textContent.match(/"in_flight": \d/) !== null`)
	b.await("the last answer", `document.querySelector("[data-one]")?.textContent.includes('"status": 418')`)
	if text := eval[string](b, `document.body.textContent`); strings.Contains(text, "whsec_") || strings.Contains(text, "T0K3N") {
		t.Error("the page shows a secret")
	}
	if dir := os.Getenv(shotsVariable); dir != "" {
		b.do(chromedp.EmulateViewport(1280, 1000))
		b.shot(dir, "webhook.png")
		b.do(chromedp.EmulateViewport(360, 2400, chromedp.EmulateMobile))
		b.shot(dir, "webhook-phone.png")
	}
	b.do(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
	if w := eval[[]int](b, "[document.documentElement.scrollWidth, innerWidth]"); w[0] > w[1] || w[1] != 360 {
		t.Errorf("it is %d wide on a screen of %d", w[0], w[1])
	}
	b.do(chromedp.EmulateViewport(1280, 900))
	b.click(`[data-subscriber="bus/good"] button`)
	b.confirm(token, "repairs", "Pause")
	b.await("the pause", cell("good", "state")+`?.startsWith("paused")`)
	b.click(`[data-subscriber="bus/good"] button`)
	b.confirm("", "", "Resume")
	b.await("that it goes on", cell("good", "state")+` === "ok"`)
}
