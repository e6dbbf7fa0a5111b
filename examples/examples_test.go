//go:build unix

package examples

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/tier"

	"github.com/runnel-go/runnel/internal/test/redistest"
)

// patience bounds the wait for an output or an effect of an example.
const patience = 30 * time.Second

// says is what each example says once it does what it shows.
var says = map[string]string{
	"basic":      "charged",
	"batch":      "inserted",
	"codec":      "secret: 1200 bytes of HTML",
	"dedupe":     ": ada paid 999 cents",
	"deadletter": `reason="unknown kind \"explode\""`,
	"delayed":    "please pay invoice",
	"fanout":     "parcel with paper of order",
	"handler":    "delivered to",
	"join":       " of ada is paid: 999 cents",
	"layout":     "invoice: ada owes 999 cents",
	"listings":   "closed listing=1",
	"middleware": "posted",
	"nightly":    "mailed ",
	"outbox":     "is sent",
	"ownmain":    "partitions gained",
	"receiver":   "indexed update https://shop.example.com/orders/7",
	"reconcile":  "at the provider",
	"retry":      "attempt 3: ada paid 300 cents",
	"rules":      "the press stands still",
	"sessions":   "a session of ada: 2 clicks in ",
	"telemetry":  "fridge: 4.",
	"testing":    "ada has 100 cents",
	"timer":      "poll: every two seconds, on the leader",
	"totals":     "ada has spent ",
	"webhook":    "mail got msg_",
}

// TestExamples runs every example with --dev, or on a server where it has state there, until it has shown something, and
// ends it with SIGTERM.
func TestExamples(t *testing.T) {
	tier.Slow(t)
	dir := build(t, "./...")
	for _, name := range names(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if says[name] == "" {
				t.Fatal("what does it say? add it to says")
			}
			env := []string{"ADDR=127.0.0.1:0"}
			args := []string{"worker", "--dev"}
			if name == "telemetry" {
				env, args = []string{"REDIS_ADDR=" + redistest.Start(t).Addr()}, []string{"worker"}
			}
			p := start(t, filepath.Join(dir, name), env, args...)
			p.waitFor(t, regexp.QuoteMeta(says[name]))
			p.terminate(t)
		})
	}
}

// TestOwnMainServes runs ownmain as the service that it is.
func TestOwnMainServes(t *testing.T) {
	srv := redistest.Start(t)
	p := start(t, filepath.Join(build(t, "./ownmain"), "ownmain"), []string{"REDIS_ADDR=" + srv.Addr(), "HTTP_ADDR=127.0.0.1:0"})
	addr := p.waitFor(t, `listening addr=(\S+)`)[1]

	redistest.Eventually(t, "ready", func() bool {
		status, _ := get(t, "http://"+addr+"/ready")
		return status == http.StatusOK
	}, p.output)
	post(t, "http://"+addr+"/orders", "one", `{"customer":"ada","amount":9.99}`)
	post(t, "http://"+addr+"/orders", "one", `{"customer":"ada","amount":9.99}`)
	post(t, "http://"+addr+"/orders", "two", `{"customer":"ada","amount":1}`)
	p.waitFor(t, "billed 1.00 to ada")
	if n := strings.Count(p.output(), "billed 9.99 to ada"); n != 1 {
		t.Errorf("an order that was sent twice under one key was billed %d times", n)
	}
	p.terminate(t)
}

func post(t *testing.T, url, key, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		t.Errorf("POST %s: %s", url, resp.Status)
	}
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// names are the directories of the examples.
func names(t *testing.T) []string {
	t.Helper()
	mains, err := filepath.Glob("*/main.go")
	if err != nil || len(mains) == 0 {
		t.Fatalf("found %q: %v", mains, err)
	}
	var out []string
	for _, m := range mains {
		out = append(out, filepath.Dir(m))
	}
	return out
}

// build builds programs and returns where they are.
func build(t *testing.T, packages string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir+string(os.PathSeparator), packages).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return dir
}

// A process is a running example.
type process struct {
	cmd    *exec.Cmd
	exited chan error

	mu      sync.Mutex
	out     bytes.Buffer
	changed chan struct{} // closed and replaced with every write
}

func start(t *testing.T, path string, env []string, args ...string) *process {
	t.Helper()
	p := &process{exited: make(chan error, 1), changed: make(chan struct{})}
	p.cmd = exec.Command(path, args...)
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.exited <- p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // in case that it still runs
		<-done
	})
	return p
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.changed)
	p.changed = make(chan struct{})
	return p.out.Write(b)
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// waitFor waits until the output matches and returns the match.
func (p *process) waitFor(t *testing.T, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		p.mu.Lock()
		match, changed := re.FindStringSubmatch(p.out.String()), p.changed
		p.mu.Unlock()
		if match != nil {
			return match
		}
		select {
		case <-changed:
		case err := <-p.exited:
			t.Fatalf("it ended (%v) without saying %q:\n%s", err, pattern, p.output())
		case <-ctx.Done():
			t.Fatalf("it never said %q:\n%s", pattern, p.output())
		}
	}
}

// terminate asks it to stop, which must end it with code 0.
func (p *process) terminate(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.exited:
		if err != nil {
			t.Errorf("after SIGTERM: %v\n%s", err, p.output())
		}
	case <-time.After(patience):
		t.Fatalf("it does not stop:\n%s", p.output())
	}
}
