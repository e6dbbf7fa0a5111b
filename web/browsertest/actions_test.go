package browsertest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/runnel-go/runnel/internal/inspect"
)

// confirm fills in the open question, and clicks a button.
func (b *browser) confirm(secret, why, button string) {
	b.t.Helper()
	b.await("a question", `document.querySelector("dialog[open]")`)
	if secret != "" {
		b.fill("dialog input[name=token]", secret)
	}
	b.fill("dialog input[name=why]", why)
	b.fill("dialog input[name=who]", "ada")
	b.click(button)
}

func TestActions(t *testing.T) {
	s, b := filled(t)
	b.open(s.url + "/#/dead/orders/invoices")
	b.await("dead letters", `document.querySelectorAll("tr[data-letter]").length === 2`)
	letters, err := s.letters().List(t.Context(), nil)
	s.must(err)
	appended := s.state().Streams[1].Appended

	choose := func(i int) {
		b.click(fmt.Sprintf(`[data-letter="%s"] input`, letters[i].ID))
	}
	choose(0)
	b.click("Replay 1")
	b.confirm("not the token at all", "try", "Replay")
	b.await("a refusal", `document.querySelector("dialog .trouble")?.textContent === "this is not the token"`)
	if got := s.state().Streams[1].Appended; got != appended {
		t.Errorf("%d events, %d before: a wrong token replayed", got, appended)
	}
	b.confirm(token, "mended", "Replay")
	b.await("what was done", `document.querySelector(".told")?.textContent.startsWith("1 dead letter replayed")`)
	s.eventually("the event to be there, and dead once more", func() bool {
		p := s.processor("orders", "invoices")
		return s.state().Streams[1].Appended == appended+1 && p.Totals.Dead == 2
	})
	choose(1)
	b.click("Drop 1")
	b.confirm("", "of no use", "Drop for good")
	b.await("what was done", `document.querySelector(".told")?.textContent.startsWith("1 dead letter dropped")`)
	if p := s.processor("orders", "invoices"); p.Totals.Dead != 1 {
		t.Errorf("%d dead letters after one of two was dropped", p.Totals.Dead)
	}

	b.goTo("audit")
	b.await("both actions", `document.querySelectorAll("tr[data-audit]").length === 2`)
	row := eval[string](b, `document.querySelector("tr[data-audit=drop]").innerText`)
	for _, want := range []string{"ada", "127.0.0.1", "orders/invoices", "done", "1 dead letter dropped", "of no use"} {
		if !strings.Contains(row, want) {
			t.Errorf("no %q in the audit: %q", want, row)
		}
	}
	b.clean(s.url, "status of 401")
}

func TestReleaseAndResume(t *testing.T) {
	s, b := filled(t)
	b.open(s.url + "/#/processor/payments/pay")
	b.await("the quarantine", `document.querySelector(".cell[data-state=quarantined]")`)
	b.click(".cell[data-state=quarantined]")
	b.await("why", `document.querySelector(".quarantine")?.textContent.includes("no such customer: poison")`)
	b.click("Skip and release")
	b.confirm(token, "", "Skip and release")
	b.await("no quarantine", `!document.querySelector(".cell[data-state=quarantined]")`)
	s.eventually("everything to be processed", func() bool { return s.processor("payments", "pay").Totals.Lag == 0 })
	b.goTo("rules")
	b.click("tr[data-rule] button")
	b.confirm("", "stamps came", "Resume")
	b.await("no rule", `document.querySelector(".empty")?.textContent === "Nothing is paused, blocked or quarantined."`)
	s.eventually("mails to be sent", func() bool { return s.processor("mails", "postman").Totals.Lag == 0 })
	b.goTo("delayed/orders")
	b.click("tr[data-delayed] input")
	b.click("Fire 1")
	b.confirm("", "", "Fire")
	b.await("one less", `document.querySelectorAll("tr[data-delayed]").length === 2`)
	b.goTo("parked/orders/statistics")
	b.click("tr[data-parked] input")
	b.click("Give up 1")
	b.confirm("", "", "Give up for good")
	b.await("one less", `document.querySelectorAll("tr[data-parked]").length === 1`)
	b.clean(s.url)
}

// A page of another origin can do nothing, even with the token.
func TestForeignPagesCannotAct(t *testing.T) {
	s, b := filled(t)
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<title>foreign</title>")
	}))
	defer foreign.Close()
	const ask = `(async () => { try { return String((await fetch(%q, {method: "POST", body: "{}", mode: %q, headers: %s})).status) } catch (e) { return "refused by the browser" } })()`
	call := func(mode, headers string) (got string) {
		b.do(chromedp.Evaluate(fmt.Sprintf(ask, s.url+"/api/actions/pause", mode, headers), &got, awaitPromise))
		return got
	}
	b.do(chromedp.Navigate(foreign.URL))
	headers := fmt.Sprintf(`{"Content-Type": "application/json", "Authorization": "Bearer %s", "X-Runnel-Dashboard": "1"}`, token)
	if got := call("cors", headers); got != "refused by the browser" {
		t.Errorf("a foreign page was answered %s", got)
	}
	if got := call("no-cors", `{}`); got != "refused by the browser" { // which sent it, but hides the answer
		t.Errorf("a foreign page without headers was answered %s", got)
	}
	b.open(s.url + "/")
	if got := call("same-origin", fmt.Sprintf(`{"Content-Type": "application/json", "Authorization": "Bearer %s"}`, token)); got != "403" {
		t.Errorf("without the header of the page: %s", got)
	}
	states, err := inspect.Audit(t.Context(), s.client, 10)
	s.must(err)
	if rules := s.state().Rules; len(rules) != 1 || len(states) != 0 {
		t.Errorf("rules %+v, audit %+v", rules, states)
	}
}

// Everything can be reached by keyboard: a processor, its map, and an action up to its
// confirmation.
func TestKeyboard(t *testing.T) {
	s, b := filled(t)
	b.open(s.url + "/")
	tab := func(what, is string) {
		t.Helper()
		for range 60 {
			b.do(chromedp.KeyEvent(kb.Tab))
			if eval[bool](b, "Boolean(((e) => "+is+")(document.activeElement))") {
				if style := eval[string](b, "getComputedStyle(document.activeElement).outlineStyle"); style == "none" {
					t.Errorf("%s has the focus, and nothing shows it", what)
				}
				return
			}
		}
		t.Fatalf("Tab does not lead to %s", what)
	}
	tab("payments/pay", `e.closest("tr")?.dataset.processor === "payments/pay" && e.matches("a")`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await("its map", `document.querySelectorAll(".cells .cell").length === 8`)
	tab("the map", `e.matches(".cell")`)
	b.do(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.Enter))
	b.await("partition 2", `document.querySelector("[data-chosen='2']")`)
	if got := eval[string](b, "document.activeElement.dataset.partition"); got != "2" {
		t.Errorf("the focus is on %q", got)
	}
	tab("Pause of the partition", `e.textContent === "Pause" && e.closest(".partition")`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await("a question with the focus in it", `document.activeElement.matches("dialog[open] input")`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.await("no question, and the focus where it was", `!document.querySelector("dialog[open]") && document.activeElement.textContent === "Pause"`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await("the question", `document.activeElement.matches("dialog[open] input[name=token]")`)
	b.do(chromedp.KeyEvent(token), chromedp.KeyEvent(kb.Enter))
	b.await("the pause", `document.querySelector(".cell[data-partition='2'][data-state=paused]")`)
	b.clean(s.url)
}

func awaitPromise(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
