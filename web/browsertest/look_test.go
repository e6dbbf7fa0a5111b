package browsertest

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// On a phone the rows of a table are cards: each value stands behind its label, not glued to it.
func TestThePhoneOverviewIsReadable(t *testing.T) {
	s, b := filled(t)
	b.do(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
	b.open(s.url + "/")
	b.await("rows", `document.querySelector("tr[data-processor] td.right")`)
	if glued := eval[[]string](b, `[...document.querySelectorAll("tr[data-processor] td[data-label]")].filter((e) => {
		const inner = e.firstElementChild.getBoundingClientRect(), card = e.closest("tr").getBoundingClientRect();
		return inner.left - card.left < 100 || inner.left - card.left > 120;
	}).map((e) => e.dataset.label)`); len(glued) > 0 {
		t.Errorf("glued to their labels, or far from them: %q", glued)
	}
	b.clean(s.url)
}

// With 256 partitions numbers are whole, swatches small, buttons in one row.
func TestTheMapOf256Partitions(t *testing.T) {
	s := newShop(t)
	b := newBrowser(t)
	s.many(256)

	for n := range 256 {
		s.must(s.redis.Client(t).HSet(t.Context(), s.client.Keys().Ownership("big", "reader", n), "epoch", "1795392656091").Err())
	}

	b.open(s.url + "/#/processor/big/reader")
	b.await("the map", `document.querySelectorAll(".cells .cell").length === 256`)
	b.click(`[data-partition="7"]`)
	b.await("the panel", `document.querySelector(".partition dl")`)
	if high := eval[float64](b, `Math.max(...[...document.querySelectorAll(".steps .cell")].map((e) => e.getBoundingClientRect().height))`); high > 24 {
		t.Errorf("a swatch of the legend is %v high", high)
	}
	if broken := eval[[]string](b, `[...document.querySelectorAll(".figure:not(.name) dd")].filter((e) => e.getBoundingClientRect().height > 1.9 * parseFloat(getComputedStyle(e).fontSize)).map((e) => e.textContent)`); len(broken) > 0 {
		t.Errorf("numbers break over lines: %q", broken)
	}
	if rows := eval[int](b, `new Set([...document.querySelectorAll(".partition button")].map((e) => e.getBoundingClientRect().top)).size`); rows != 1 {
		t.Errorf("the buttons of a partition stand at %d heights", rows)
	}
	b.clean(s.url)
}

func TestTilesFillTheirFrame(t *testing.T) {
	s, b := filled(t)
	b.open(s.url + "/")
	if gap := eval[float64](b, `document.querySelector("dl.figures").getBoundingClientRect().right - document.querySelector("dl.figures").lastElementChild.getBoundingClientRect().right`); gap > 4 {
		t.Errorf("%v pixels behind the last tile are hollow", gap)
	}
	b.await("legends", `document.querySelectorAll(".u-legend").length === 2`)
	if text := eval[string](b, `[...document.querySelectorAll(".u-legend")].map((e) => e.innerText).join(" ")`); strings.Contains(text, "time") || !strings.Contains(text, "appended, once per processor") {
		t.Errorf("the legends are %q", text)
	}
	b.clean(s.url)
}

// While events load, the page says so and nothing else.
func TestEventsWhileLoading(t *testing.T) {
	s, b := filled(t)
	b.open(s.url + "/")
	b.do(chromedp.Evaluate(`window.fetch = ((real) => (address, ...more) => String(address.url ?? address).includes("events") ? new Promise(() => {}) : real(address, ...more))(window.fetch)`, nil))
	b.do(chromedp.Evaluate(`location.hash = "#/events/mails"`, nil))
	b.await("what it does", `document.querySelector("main .hint")?.innerText.trim() === "Looking for events."`)
	s.must(s.streams.mails.Send(t.Context(), order{Customer: "zoe"}))
	b.await("the new lag", `document.querySelector("main .hint")`)
	b.goTo("overview")
	b.await("the event", `[...document.querySelectorAll("tr[data-processor='mails/postman'] [data-field=lag]")].some((e) => e.textContent === "41")`)
	b.do(chromedp.Evaluate(`location.hash = "#/events/mails"`, nil))
	b.await("what it does", `document.querySelector("main .hint")?.innerText.trim() === "Looking for events."`)
	b.clean(s.url)
}

// A quarantine by a panic shows its cause on a line; the stack is folded, and keeps its lines.
func TestAQuarantineByAPanic(t *testing.T) {
	s := newShop(t)
	b := newBrowser(t)
	s.work("alpha")
	s.must(s.streams.payments.Send(t.Context(), order{Customer: "eve", Note: "panic"}))
	s.eventually("a quarantine", func() bool { return s.processor("payments", "pay").Totals.Quarantined == 1 })
	b.open(s.url + "/#/processor/payments/pay")
	b.click(".cell[data-state=quarantined]")
	b.await("the cause", `document.querySelector(".quarantine summary")?.textContent.endsWith("panic: out of paper")`)
	if got := eval[bool](b, `document.querySelector(".quarantine details").open`); got {
		t.Error("the stack is not folded")
	}
	if lines := eval[int](b, `document.querySelector(".quarantine pre").textContent.split("\n").length`); lines < 5 {
		t.Errorf("the stack has %d lines", lines)
	}
	b.clean(s.url)
}
