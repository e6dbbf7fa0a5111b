package browsertest

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/stage"
	"github.com/runnel-go/runnel/web"
)

type listing struct{ ID, Place, Note string }

// listed runs a worker over a set of which two visits are dead, one waits for another attempt, and a stage is paused.
func listed(t *testing.T, s *shop) *runnel.App {
	app := runnel.New("market", &runnel.Options{RedisURL: s.redis.URL(), Logger: discard()})
	set := stage.New(app, "listings", func(l listing) string { return l.ID }, &stage.Options{
		Partitions: 4, Retry: &runnel.Retry{Max: 3, MinBackoff: time.Hour, MaxBackoff: time.Hour},
	})
	set.Stage("geocode", func(l listing) bool { return l.Place == "" }, func(_ context.Context, l *listing) (stage.Result, error) {
		switch {
		case strings.HasPrefix(l.ID, "bad"):
			return stage.Untouched, runnel.DeadLetter(errors.New("no such place: " + evil))
		case strings.HasPrefix(l.ID, "late"):
			return stage.Untouched, errors.New("the geocoder is down")
		}
		l.Place = "Ulm"
		return stage.Updated, nil
	}, nil)
	for _, name := range []string{"price", "close"} {
		set.Stage(name, nil, func(context.Context, *listing) (stage.Result, error) { return stage.Untouched.After(time.Hour), nil }, nil)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		app.Close()
	})
	s.must(set.Put(t.Context(), listing{ID: "bad/1 " + evil, Note: "12345678901234567890"}, listing{ID: "bad2"}, listing{ID: "late"}, listing{ID: "a"}))
	return app
}

func TestThePageOfSets(t *testing.T) {
	s, b := newShop(t), newBrowser(t)
	app := listed(t, s)
	server := httptest.NewServer(web.Handler(app, &web.Options{Every: 500 * time.Millisecond, AllowActions: true, Token: token}))
	defer server.Config.Shutdown(t.Context()) // ends its streams
	b.open(server.URL + "/#/stage")
	cell := func(stage, label string) string {
		return `document.querySelector('[data-stage="` + stage + `"] [data-label="` + label + `"]')?.textContent`
	}
	b.await("two dead visits", cell("listings/geocode", "dead")+` === "2"`)
	b.await("one that failed", cell("listings/geocode", "failing")+` === "1"`)
	b.click(`[data-stage="listings/price"] button`)
	b.confirm(token, "no prices", "Pause")
	b.await("the pause", cell("listings/price", "held")+` === "pause"`)

	b.fill(".filters input[name=id]", "bad/1 "+evil)
	b.click("Show")
	visit := func(stage, label string) string {
		return `document.querySelector('[data-visit="` + stage + `"] [data-label="` + label + `"]')?.textContent`
	}
	b.await("a dead visit", visit("geocode", "state")+` === "dead"`)
	b.await("its error, as text", visit("geocode", "error")+`.includes("onerror")`)
	b.await("its value", `document.querySelector("main pre.record")?.textContent.includes('"12345678901234567890"')`)
	if dir := os.Getenv(shotsVariable); dir != "" {
		b.do(chromedp.EmulateViewport(1280, 900))
		b.shot(dir, "sets.png")
		b.do(chromedp.EmulateViewport(360, 2400, chromedp.EmulateMobile))
		b.shot(dir, "sets-phone.png")
	}
	b.do(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
	if w := eval[[]int](b, "[document.documentElement.scrollWidth, innerWidth]"); w[0] > w[1] || w[1] != 360 {
		t.Errorf("it is %d wide on a screen of %d", w[0], w[1])
	}
	b.do(chromedp.EmulateViewport(1280, 900))
	b.click(`[data-visit="geocode"] button`)
	b.confirm("", "mended", "Retry")
	b.await("what was done", `document.querySelector(".told")?.textContent.includes("retried")`)
	b.click(`[data-visit="close"] button`)
	b.confirm("", "now", "Visit")
	b.await("what was done", `document.querySelector(".told")?.textContent.includes("1 ID of listings/close to be visited")`)
	b.click(`[data-visit=""] button`)
	b.confirm("", "now", "Touch")
	b.await("what was done", `document.querySelector(".told")?.textContent.includes("1 ID of listings to be visited")`)

	b.do(chromedp.Evaluate(`location.hash = "#/parked/listings/geocode"`, nil))
	b.await("the failed visit", `document.querySelector("main tbody tr")?.dataset.parked === "late"`)
	b.click(`[data-parked="late"] input`)
	b.click("Retry now 1")
	b.confirm("", "it is up", "Retry now")
	b.await("what was done", `document.querySelector(".told")?.textContent.includes("due now")`)
	b.clean(server.URL)
}
