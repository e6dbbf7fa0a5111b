package browsertest

import (
	"fmt"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/web"
)

// filled returns a settled shop with something of everything, and a browser.
func filled(t *testing.T) (*shop, *browser) {
	t.Helper()
	s := newShop(t)
	b := newBrowser(t)
	s.work("alpha")
	s.work("beta")
	s.fill()
	s.settled()
	return s, b
}

func TestNumbersAreTheTruth(t *testing.T) {
	s, b := filled(t)
	b.open(s.url + "/")
	a := s.state()
	for _, st := range a.Streams {
		for _, p := range st.Processors {
			name := p.Stream + "/" + p.Processor
			b.await(name, fmt.Sprintf("document.querySelector('tr[data-processor=%q]')", name))
			for field, want := range map[string]int64{
				"lag": p.Totals.Lag, "pending": p.Totals.Pending, "parked": p.Totals.Parked, "dead": p.Totals.Dead, "lost": p.Totals.Lost, "members": int64(len(p.Members)),
			} {
				if got := b.text(fmt.Sprintf(`tr[data-processor=%q] [data-field=%q]`, name, field)); got != strconv.FormatInt(want, 10) {
					t.Errorf("%s: %s is %s, want %d", name, field, got, want)
				}
			}
		}
	}
	for _, st := range a.Streams {
		for _, p := range st.Processors {
			s.compareMap(b, p)
		}
	}
	b.clean(s.url)
}

func (s *shop) compareMap(b *browser, p inspect.ProcessorState) {
	s.t.Helper()
	name := p.Stream + "/" + p.Processor
	b.do(chromedp.Evaluate(fmt.Sprintf("location.hash = '#/processor/%s'", name), nil))
	b.await("the map of "+name, fmt.Sprintf("document.querySelector('[data-processor=%q]') && document.querySelectorAll('.cells .cell').length === %d", name, len(p.Partitions)))
	type cell struct{ Lag, Owner, State, Text string }
	cells := eval[[]cell](b, `[...document.querySelectorAll(".cells .cell")].map((c) => ({Lag: c.dataset.lag, Owner: c.dataset.owner, State: c.dataset.state, Text: c.getAttribute("aria-label")}))`)
	for n, part := range p.Partitions {
		state := "ok"
		switch {
		case part.Quarantine != nil:
			state = "quarantined"
		case part.Held == "pause":
			state = "paused"
		}
		want := cell{strconv.FormatInt(part.Lag, 10), part.Worker, state, fmt.Sprintf("partition %d: %s, lag %d, %s", n, part.Worker, part.Lag, state)}
		if cells[n] != want {
			s.t.Errorf("%s: partition %d is %+v, want %+v", name, n, cells[n], want)
		}
	}
}

// Changes show without a reload, even a partition that moves.
func TestNumbersAreLive(t *testing.T) {
	s, b := filled(t)
	b.open(s.url + "/#/processor/mails/postman")
	before := s.processor("mails", "postman").Totals.Lag
	for i := range 25 {
		s.must(s.streams.mails.Send(t.Context(), order{Customer: fmt.Sprint("reader ", i)}))
	}
	b.await("the new lag", fmt.Sprintf(`document.querySelector("dl[data-processor] [data-field=lag]").textContent === "%d"`, before+25))
	s.work("gamma")
	b.await("a move to the new worker", `[...document.querySelectorAll(".moves .to")].some((e) => e.textContent === "gamma")`)
	b.await("a cell of the new worker", `document.querySelector(".cell[data-owner=gamma]")`)
	s.redis.Kill()
	b.await("trouble", `document.querySelector(".connection").textContent.startsWith("Redis does not answer: the numbers are ")`)
	s.redis.Restart()
	b.await("live numbers again", `document.querySelector(".connection").textContent === "live"`)
	b.clean(s.url)
}

// Events are found by key; a payload is always text.
func TestPayloadsAreText(t *testing.T) {
	s, b := filled(t)
	b.open(s.url + "/#/events/orders")
	b.await("events", `document.querySelectorAll("tr[data-event]").length >= 43`)
	b.fill("input[name=key]", "eve")
	b.click("Search")
	b.await("the event of eve", `document.querySelectorAll("tr[data-event]").length === 1`)
	b.click(".open")
	b.await("the record", `document.querySelector("pre.record")?.textContent.includes("<script>alert(2)</script>")`)
	b.do(chromedp.Evaluate("location.hash = '#/dead/orders/invoices'", nil))
	b.await("dead letters", `document.querySelectorAll("tr[data-letter]").length === 2`)
	b.await("the error as text", `[...document.querySelectorAll("td.payload")].some((e) => e.textContent.includes("<script>alert(2)</script>"))`)
	b.click(`tr[data-letter] .open`)
	b.await("the letter", `document.querySelector(".opened dl")`)
	b.do(chromedp.Evaluate("location.hash = '#/parked/orders/statistics'", nil))
	b.await("parked events", `document.querySelectorAll("tr[data-parked]").length === 2`)
	if n := eval[int](b, `document.querySelectorAll("main img, main script").length`); n != 0 {
		t.Errorf("%d elements were made of a payload", n)
	}
	b.clean(s.url)
}

// A read-only dashboard has no control that changes anything.
func TestReadOnlyPages(t *testing.T) {
	s, b := filled(t)
	server := httptest.NewServer(web.Handler(s.app, &web.Options{Every: 500 * time.Millisecond}))
	defer server.Config.Shutdown(t.Context()) // ends its streams
	b.open(server.URL + "/")
	if got := b.text(".mode"); got != "read-only" {
		t.Errorf("the mode is %q", got)
	}
	for _, route := range routes {
		b.goTo(route)
		if route == "processor/payments/pay" {
			b.click(".cell[data-state=quarantined]")
			b.await("why", `document.querySelector(".quarantine")`)
		}
		if n := eval[int](b, `[...document.querySelectorAll("main button")].filter((e) => /pause|block|replay|drop|resume|retry|give up|fire|cancel/i.test(e.textContent)).length`); n > 0 {
			t.Errorf("%s has %d buttons that change something", route, n)
		}
	}
	b.clean(server.URL)
}

// The page of events shows how many are new, and loads them on request.
func TestNewEvents(t *testing.T) {
	s, b := filled(t)
	b.open(s.url + "/#/events/mails")
	b.await("events", `document.querySelectorAll("tr[data-event]").length === 40`)
	s.must(s.streams.mails.Send(t.Context(), order{Customer: "zoe"}, order{Customer: "zoe"}))
	b.click("up to 2 events came since: look again")
	b.await("them", `document.querySelectorAll("tr[data-event]").length === 42 && document.querySelector("tr[data-event]").innerText.includes("zoe")`)
	b.await("nothing new", `!document.querySelector("main .hint button")`)
	b.clean(s.url)
}
