package browsertest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// call returns the value of an expression with the exports of a file of the page.
func call[T any](b *browser, file, expression string) (v T) {
	b.t.Helper()
	b.do(chromedp.Evaluate(fmt.Sprintf(`import("/assets/%s").then((f) => f.%s)`, file, expression), &v, awaitPromise))
	return v
}

func (b *browser) pass(samples int) {
	b.t.Helper()
	b.do(chromedp.Evaluate(`import("/assets/live.js").then((f) => { globalThis.passed = 0; f.past.follow(() => globalThis.passed++) })`, nil, awaitPromise))
	b.await("samples", fmt.Sprintf("globalThis.passed >= %d", samples))
}

// Text in an open question survives samples; a token that could not be checked is not kept.
func TestQuestionsKeepWhatIsWritten(t *testing.T) {
	s, b := filled(t)
	b.open(s.url + "/#/processor/payments/pay")
	b.click("Pause")
	b.await("a question", `document.querySelector("dialog[open]")`)
	b.fill("dialog input[name=who]", "ada")
	b.fill("dialog input[name=why]", "slowly")
	b.fill("dialog input[name=token]", "a token – of others")
	b.pass(2)
	const written = `[...document.querySelectorAll("dialog input")].map((e) => e.name + "=" + e.value).join()`
	if got := eval[string](b, written); got != "for=,why=slowly,who=ada,token=a token – of others" {
		t.Errorf("after two samples: %s", got)
	}
	b.do(chromedp.Evaluate(`document.querySelector("dialog button[type=submit]").click()`, nil))
	b.await("what is wrong with it", `document.querySelector("dialog .trouble")`)
	if got := eval[string](b, `sessionStorage.getItem("runnel-token") || ""`); got != "" {
		t.Errorf("the page keeps %q", got)
	}
	b.fill("dialog input[name=token]", token)
	b.do(chromedp.Evaluate(`document.querySelector("dialog button[type=submit]").click()`, nil))
	b.await("the pause", `document.querySelector(".told")?.textContent.startsWith("pause of processor:payments/pay by ada@")`)
	b.clean(s.url)
}

// After a failed action the list is read again.
func TestListsAfterFailures(t *testing.T) {
	s, b := filled(t)
	b.open(s.url + "/#/dead/orders/invoices")
	b.await("dead letters", `document.querySelectorAll("tr[data-letter]").length === 2`)
	b.click(`tr[data-letter] input`)
	letters, err := s.letters().List(t.Context(), nil)
	s.must(err)
	_, err = s.letters().Drop(t.Context(), letters) // as another page would
	s.must(err)
	b.click("Drop 1")
	b.confirm(token, "", "Drop for good")
	b.await("an error", `document.querySelector("dialog .trouble")?.textContent === "none of them is there any more"`)
	b.await("no dead letter", `document.querySelectorAll("tr[data-letter]").length === 0`)
	b.clean(s.url, "status of 409")
}

// An unreadable partition has no numbers, not zeros.
func TestWhatIsNotKnown(t *testing.T) {
	s := newShop(t)
	b := newBrowser(t)
	s.many(4)
	s.must(s.client.Redis().Set(t.Context(), s.client.Keys().Partition("big", 2), "no stream", 0).Err())
	b.open(s.url + "/#/processor/big/reader")
	b.await("the cells", `document.querySelectorAll(".cells .cell").length === 4`)
	if got := b.text(".cell[data-partition='2'] .lag") + b.text(".cell[data-partition='1'] .lag"); got != "–0" {
		t.Errorf("lags %s", got)
	}
	b.click(".cell[data-partition='2']")
	b.await("why", `document.querySelector(".partition .trouble")`)
	if got := eval[int](b, `document.querySelectorAll(".partition .figure").length`); got != 0 {
		t.Errorf("%d figures of an unreadable partition", got)
	}
	b.clean(s.url)
}

// A payload is shown unchanged, with its numbers and fields as in the record. A time that cannot be
// shown becomes the nearest one.
func TestWhateverIsWritten(t *testing.T) {
	s := newShop(t)
	b := newBrowser(t)
	s.many(1)
	add := entryOf(s, "big", 0)
	add.ID = "9000000000000000-1" // ms, more than a Date holds
	s.must(s.client.Redis().XAdd(t.Context(), add).Err())
	b.open(s.url + "/#/%E0/%")
	b.goTo("events/big")
	b.await("the nearest time that can be told", `document.querySelector("tr[data-event] time")?.textContent === "9999-12-31 23:59:59.999Z"`)
	deep := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	for record, want := range map[string]string{
		`{"a":1.50,"a":1e400,"2":[],"1":{},"b":[1,{"c":"{,}\"\\"}]}`: "{\n  \"a\": 1.50,\n  \"a\": 1e400,\n  \"2\": [],\n  \"1\": {},\n  \"b\": [\n    1,\n    {\n      \"c\": \"{,}\\\"\\\\\"\n    }\n  ]\n}",
		`"text"`: `"text"`, deep: deep,
	} {
		if got := call[string](b, "format.js", fmt.Sprintf("indented(%q)", record)); got != want {
			t.Errorf("%.80s is shown as %.300s", record, got)
		}
	}
	b.clean(s.url)
}

// Ages count by the server's clock, not the browser's.
func TestWrongClock(t *testing.T) {
	s, b := filled(t)
	b.do(chromedp.ActionFunc(clockAhead(3 * time.Hour)))
	b.open(s.url + "/#/dead/orders/invoices")
	b.await("dead letters", `document.querySelectorAll("tr[data-letter]").length === 2`)
	b.await("how old they are", `/^\d+m?s( ago)?$|^\d+m\d+s ago$/.test(document.querySelector("tr[data-letter] td[data-label=died]")?.textContent)`)
	b.goTo("delayed/orders")
	b.await("when they are due", `/^(0h)?59m\d+s$/.test(document.querySelector("tr[data-delayed] td[data-label=in]")?.textContent)`)
	b.clean(s.url)
}

// clockAhead sets the clock of pages opened from now on.
func clockAhead(d time.Duration) func(context.Context) error {
	script := fmt.Sprintf("{ const real = Date.now; Date.now = () => real() + %d }", d.Milliseconds())
	return func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(script).Do(ctx)
		return err
	}
}
