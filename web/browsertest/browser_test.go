package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long a change may take to show, even on a busy machine.
const patience = time.Minute

// A browser is one page of a Chromium of its own, and its complaints.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	asked    []string // addresses of all requests
	problems []string // errors of scripts, console and policy; dialogs
}

// program returns the installed browser.
func program() (string, bool) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, true
		}
	}
	return "", false
}

const missing = "no browser is installed, so the dashboard is not tested in one: make test-web installs Chromium"

// TestMain reports that the tests are skipped.
func TestMain(m *testing.M) {
	if _, ok := program(); !ok {
		fmt.Println(missing)
	}
	os.Exit(m.Run())
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	path, ok := program()
	if !ok {
		t.Skip(missing)
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(patience),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-sync", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost"),
	}
	alloc, cancelAlloc := chromedp.NewExecAllocator(context.Background(), options...)
	quiet := func(string, ...any) {} // about events unknown to the library
	ctx, cancel := chromedp.NewContext(alloc, chromedp.WithErrorf(quiet))
	b := &browser{t: t, ctx: ctx}
	t.Cleanup(func() {
		chromedp.Cancel(ctx) // and waits for its end
		cancel()
		cancelAlloc()
	})
	chromedp.ListenTarget(ctx, b.note)
	// The first run starts the browser, which ends with its context.
	if err := chromedp.Run(ctx, network.Enable(), runtime.Enable(), log.Enable(), page.Enable(), chromedp.EmulateViewport(1280, 900)); err != nil {
		t.Fatal(err)
	}
	return b
}

// note records what the page requested, and what went wrong. It closes dialogs, so that the test
// goes on.
func (b *browser) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, e.Request.URL)
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, "exception: "+e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			text, _ := json.Marshal(e.Args)
			b.problems = append(b.problems, "console: "+string(text))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
			b.problems = append(b.problems, "log: "+e.Entry.Text+" "+e.Entry.URL)
		}
	case *page.EventJavascriptDialogOpening:
		b.problems = append(b.problems, "dialog: "+e.Message)
		go chromedp.Run(b.ctx, page.HandleJavaScriptDialog(true))
	}
}

// clean fails the test if anything went wrong that none of these texts explains, or if the page
// requested anything from another server.
func (b *browser) clean(server string, but ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.problems {
		explained := false
		for _, text := range but {
			explained = explained || strings.Contains(p, text)
		}
		if !explained {
			b.t.Error(p)
		}
	}
	for _, address := range b.asked {
		if !strings.HasPrefix(address, server+"/") && !strings.HasPrefix(address, "data:") && address != "about:blank" {
			b.t.Errorf("the page requested %s", address)
		}
	}
	if len(b.asked) < 5 {
		b.t.Errorf("the page requested only %q", b.asked)
	}
}

func (b *browser) do(actions ...chromedp.Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// open opens an address and waits for the first sample.
func (b *browser) open(address string) {
	b.t.Helper()
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(address))
	b.await("live numbers", `document.querySelector(".connection")?.textContent === "live" && !!document.querySelector("main h1, main dl, main .bar")`)
}

// eval returns the value of an expression.
func eval[T any](b *browser, expression string) (v T) {
	b.t.Helper()
	b.do(chromedp.Evaluate(expression, &v))
	return v
}

// await waits until an expression is true.
func (b *browser) await(what, expression string) {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for !eval[bool](b, "Boolean("+expression+")") {
		if time.Now().After(deadline) {
			shown := eval[string](b, "document.body.innerText")
			b.mu.Lock()
			defer b.mu.Unlock()
			b.t.Fatalf("timed out waiting for %s; the page shows:\n%s\n%q", what, shown, b.problems)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-b.ctx.Done():
			b.t.Fatal(b.ctx.Err())
		}
	}
}

// text returns the text of an element, without the spaces between digits.
func (b *browser) text(selector string) string {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf(`(document.querySelector(%q)?.textContent ?? "(not there)").replace(/\u202f/g, "").trim()`, selector))
}

// click clicks on the element with this text, or of a selector with a class or an attribute.
func (b *browser) click(what string) {
	b.t.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll("dialog[open] button, dialog[open] input")].concat([...document.querySelectorAll("button, a, label, input")]).find((e) => e.textContent.trim() === %q)`, what)
	if strings.HasPrefix(what, ".") || strings.Contains(what, "[") {
		find = fmt.Sprintf("document.querySelector(%q)", what)
	}
	// In one step, or the element could be replaced before the click.
	b.await("something enabled to click: "+what, "((e) => e && !e.disabled && (e.click(), true))("+find+")")
}

// fill writes into a field as a user does.
func (b *browser) fill(selector, text string) {
	b.t.Helper()
	b.await("a field "+selector, fmt.Sprintf("document.querySelector(%q)", selector))
	b.do(chromedp.Evaluate(fmt.Sprintf("document.querySelector(%q).focus(); document.querySelector(%q).value = ''", selector, selector), nil), chromedp.KeyEvent(text))
}
