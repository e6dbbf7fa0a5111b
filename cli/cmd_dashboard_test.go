package cli

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/inspect"
)

// serveDashboard runs the command until it is stopped.
func serveDashboard(t *testing.T, app *runnel.App, args ...string) (base string, served *running) {
	t.Helper()
	served = start(t, app, append([]string{"dashboard", "--addr", "127.0.0.1:0"}, args...)...)
	return served.find(`dashboard of app shop: (http://\S+)/`), served
}

func postAction(t *testing.T, base, name, body, token string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/api/actions/"+name, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Runnel-Dashboard", "1")
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// The dashboard works with and without an app's types, only reads unless actions are allowed, and
// ends with its live connections when interrupted.
func TestDashboard(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 4, KeyField: "customer"})
	s.send(3)
	for _, app := range []*runnel.App{s.app, nil} {
		args := []string{}
		if app == nil {
			args = []string{"--app", "shop", "--redis-url", s.url}
		}
		base, served := serveDashboard(t, app, args...)
		if code, text := get(t, base+"/"); code != http.StatusOK || !strings.Contains(text, "assets/app.js") {
			t.Errorf("%d %s", code, text)
		}
		if code, text := get(t, base+"/api/events?stream=orders"); code != http.StatusOK || strings.Count(text, `\"customer\":`) != 3 {
			t.Errorf("%d %s", code, text)
		}
		if code := postAction(t, base, "pause", `{"scope":"app"}`, "any token at all"); code != http.StatusMethodNotAllowed {
			t.Errorf("an action: %d", code)
		}
		if code, _ := get(t, strings.Replace(base, "127.0.0.1", "localhost", 1)+"/"); code != http.StatusOK {
			t.Errorf("as localhost: %d", code)
		}
		watching, err := http.Get(base + "/api/live")
		if err != nil {
			t.Fatal(err)
		}
		served.stop().want(t, 0, "", "dashboard of app shop")
		io.Copy(io.Discard, watching.Body) // until its end
		watching.Body.Close()
	}
}

func TestDashboardActionsAndAudit(t *testing.T) {
	s := newShop(t, nil)
	s.send(1)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("a token of some length\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	base, served := serveDashboard(t, s.app, "--allow-actions", "--token-file", file)
	if code := postAction(t, base, "pause", `{"scope":"stream:orders","who":"ada","why":"no paper"}`, "a token of some length"); code != http.StatusOK {
		t.Errorf("an action: %d", code)
	}
	if code := postAction(t, base, "pause", `{"scope":"app"}`, "another token of some length"); code != http.StatusUnauthorized {
		t.Errorf("with another token: %d", code)
	}
	if r := served.stop(); strings.Contains(r.err, "a token of") {
		t.Errorf("shows the token: %s", r.err)
	}
	s.run("rules", "ls").want(t, 0, "stream:orders", "")
	s.untyped("audit", "ls").matches(t, `ada +127\.0\.0\.1 +pause +stream:orders +done +pause of stream:orders by ada@127\.0\.0\.1: no paper +no paper`)
	if got := parse[[]inspect.AuditState](t, s.run("audit", "ls", "--limit", "1", "--output", "json")); len(got) != 1 || got[0].Who != "ada" {
		t.Errorf("%+v", got)
	}
}

// Beyond the loopback the dashboard warns that it is open to the network.
func TestDashboardBeyondTheLoopback(t *testing.T) {
	s := newShop(t, nil)
	_, served := serveDashboard(t, s.app, "--addr", "0.0.0.0:0", "--log-level", "warn")
	served.stop().want(t, 0, "", "dashboard open to the network")
	t.Setenv(envDashboardToken, "a token of some length")
	_, served = serveDashboard(t, s.app, "--addr", "0.0.0.0:0", "--log-level", "warn", "--allow-actions")
	served.stop().want(t, 0, "", "actions=true")
}

// Mistakes are found before a connection to Redis.
func TestDashboardMistakes(t *testing.T) {
	away := []string{"--redis-url", "redis://127.0.0.1:1"}
	run := func(args ...string) result {
		return run(t.Context(), newShopApp(), "", append(args, away...)...)
	}
	short := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(short, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(envDashboardToken, "")
	run("dashboard", "x").want(t, 2, "", `unexpected argument "x"`)
	run("dashboard", "--addr", "8080").want(t, 2, "", "is no address")
	run("dashboard", "--allow-actions").want(t, 2, "", "needs a token: set RUNNEL_DASHBOARD_TOKEN, or say --token-file")
	run("dashboard", "--token-file", short).want(t, 2, "", "--token-file goes with --allow-actions")
	run("dashboard", "--allow-actions", "--token-file", "/nowhere").want(t, 2, "", "--token-file")
	run("dashboard", "--allow-actions", "--token-file", short).want(t, 2, "", "at least 16 are needed")
	run("dashboard").want(t, 1, "", "no Redis at 127.0.0.1:1")
	run("audit", "ls", "--limit", "0").want(t, 2, "", "--limit is at least 1")
	run("audit", "ls", "x").want(t, 2, "", `unexpected argument "x"`)
}
