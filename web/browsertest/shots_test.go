package browsertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// shotsVariable names the directory for pictures of the dashboard, as `make web-shots` does;
// without it none are taken.
const shotsVariable = "RUNNEL_WEB_SHOTS"

// mostBytes is the maximal size of a picture.
const mostBytes = 200 << 10

var routes = []string{
	"overview", "processor/orders/printer", "processor/payments/pay", "events/orders", "dead/orders/invoices", "parked/orders/statistics", "delayed/orders", "rules", "audit",
}

func (b *browser) goTo(route string) {
	b.t.Helper()
	b.do(chromedp.Evaluate(fmt.Sprintf("location.hash = '#/%s'", route), nil))
	name, _, _ := strings.Cut(route, "/")
	b.await("the page "+route, fmt.Sprintf(`document.querySelector("nav a.here")?.hash === "#/%s" && document.querySelector("main h1") && !document.querySelector("main .trouble")`, name))
	if route != "overview" && route != "rules" && route != "audit" && route[:3] != "pro" {
		b.await("the rows of "+route, `document.querySelector("main tbody tr")`)
	}
}

// No page is wider than a phone; wide content scrolls in its own box.
func TestPagesFitAPhone(t *testing.T) {
	s, b := filled(t)
	b.do(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
	b.open(s.url + "/")
	for _, route := range routes {
		b.goTo(route)
		if w := eval[[]int](b, "[document.documentElement.scrollWidth, innerWidth]"); w[0] > w[1] || w[1] != 360 {
			wide := eval[string](b, `[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > 361).slice(0, 5).map((e) => e.outerHTML.slice(0, 120)).join("\n")`)
			t.Errorf("%s is %d wide on a screen of %d:\n%s", route, w[0], w[1], wide)
		}
	}
	b.clean(s.url)
}

// scheme makes the system ask for light or dark.
func (b *browser) scheme(name string) {
	b.t.Helper()
	b.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}))
}

// The page follows the system's scheme until the user chooses another one. With RUNNEL_WEB_SHOTS
// pictures are taken of it, while two workers run.
func TestSchemes(t *testing.T) {
	s, b := filled(t)
	b.open(s.url + "/")
	dir := os.Getenv(shotsVariable)
	if dir != "" {
		defer s.trade()()
		b.do(chromedp.EmulateViewport(1280, 900))
		s.picture(b, dir)
	}
	back := func() string { return eval[string](b, "getComputedStyle(document.body).backgroundColor") }
	b.scheme("light")
	light := back()
	b.scheme("dark")
	dark := back()
	if light == dark {
		t.Errorf("light and dark are both %s", light)
	}
	for i, want := range []string{light, dark, dark} { // light, dark, auto
		b.click(".theme")
		b.await(fmt.Sprint("scheme ", i), fmt.Sprintf("getComputedStyle(document.body).backgroundColor === %q", want))
	}
	b.clean(s.url)
}

// watch waits until the charts have something to show.
func (b *browser) watch(d time.Duration) {
	select {
	case <-time.After(d):
	case <-b.ctx.Done():
	}
}

// picture takes pictures of the pages while a third worker joins.
func (s *shop) picture(b *browser, dir string) {
	b.t.Helper()
	b.scheme("light")
	b.watch(30 * time.Second)
	s.work("gamma")
	b.watch(15 * time.Second)
	b.shot(dir, "dashboard.png")
	b.goTo("processor/orders/printer")
	b.await("cells", `document.querySelectorAll(".cells .cell").length === 16`)
	b.click(`[data-partition="13"]`)
	b.shot(dir, "dashboard-processor.png")
	b.do(chromedp.EmulateViewport(1280, 640))
	b.goTo("events/orders")
	b.click(".open")
	b.await("the record", `document.querySelector("pre.record")`)
	b.shot(dir, "dashboard-events.png")
	b.goTo("dead/orders/invoices")
	b.shot(dir, "dashboard-dead-letters.png")
	b.do(chromedp.EmulateViewport(1280, 900))
	b.scheme("dark")
	b.goTo("processor/orders/printer")
	b.await("cells", `document.querySelectorAll(".cells .cell").length === 16`)
	b.shot(dir, "dashboard-dark.png")
	b.scheme("light")
	b.do(chromedp.EmulateViewport(360, 1500, chromedp.EmulateMobile, chromedp.EmulateScale(1.5)))
	b.goTo("overview")
	b.shot(dir, "dashboard-phone.png")
	b.do(chromedp.EmulateViewport(1280, 900))
}

func (b *browser) shot(dir, name string) {
	b.t.Helper()
	b.await("charts to be drawn", `document.fonts.status === "loaded"`)
	var png []byte
	b.do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		png, err = page.CaptureScreenshot().WithOptimizeForSpeed(false).Do(ctx)
		return err
	}))
	if len(png) > mostBytes {
		b.t.Errorf("%s has %d bytes", name, len(png))
	}
	if err := os.WriteFile(filepath.Join(dir, name), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// trade sends orders at a changing rate, until the returned function is called.
func (s *shop) trade() (end func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var trading sync.WaitGroup
	trading.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			n := 3 + rand.IntN(8)
			if i%160 < 30 {
				n *= 6
			}
			for range n {
				o := order{Customer: fmt.Sprint("customer ", rand.IntN(400)), Amount: float64(rand.IntN(9000)) / 100}
				if s.streams.orders.Send(ctx, o) != nil || i%3 == 0 && s.streams.payments.Send(ctx, o) != nil {
					return
				}
			}
		}
	})
	return func() {
		cancel()
		trading.Wait()
	}
}
