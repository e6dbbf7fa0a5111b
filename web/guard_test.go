package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-go/runnel"
)

// Every answer has the headers that restrict the browser to what the page does.
func TestEveryAnswerHasTheHeaders(t *testing.T) {
	s := newShop(t, 1, &Options{AllowActions: true, Token: secret})
	for _, tt := range []struct {
		method, path string
		code         int
	}{
		{"GET", "/", 200}, {"GET", "/assets/app.js", 200}, {"HEAD", "/", 200}, {"HEAD", "/api/live", 200}, {"GET", "/assets/", 404}, {"GET", "/assets/../web.go", 307},
		{"GET", "/nothing", 404}, {"GET", "/api/events?stream=orders", 200}, {"GET", "/api/events?stream=none", 404}, {"GET", "/api/dead", 400},
		{"GET", "/api/actions/pause", 405}, {"POST", "/api/actions/pause", 403}, {"PUT", "/", 405}, {"POST", "/api/token", 403},
	} {
		resp, _ := s.request(tt.method, tt.path, "")
		if resp.StatusCode != tt.code {
			t.Errorf("%s %s: %d, want %d", tt.method, tt.path, resp.StatusCode, tt.code)
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("%s %s: %s is %q", tt.method, tt.path, name, got)
			}
		}
		if got := resp.Header.Get("Cache-Control"); got != "no-store" && !strings.HasPrefix(tt.path, "/assets/app") && tt.path != "/" {
			t.Errorf("%s %s may be kept: %q", tt.method, tt.path, got)
		}
	}
	for _, word := range []string{"'unsafe-inline'", "'unsafe-eval'", "*", "http"} {
		if strings.Contains(policy, word) {
			t.Errorf("the policy allows %s", word)
		}
	}
}

func TestAssetsAreAskedForAgain(t *testing.T) {
	s := newShop(t, 1, nil)
	resp, body := s.request("GET", "/assets/app.js", "")
	if got := resp.Header.Get("Content-Type"); got != "text/javascript; charset=utf-8" || resp.Header.Get("Cache-Control") != "no-cache" || body == "" {
		t.Errorf("%v", resp.Header)
	}
	if again, body := s.request("GET", "/assets/app.js", "", "If-None-Match", resp.Header.Get("ETag")); again.StatusCode != http.StatusNotModified || body != "" {
		t.Errorf("%d %q", again.StatusCode, body)
	}
}

// Without AllowActions the dashboard only reads, whatever the credentials.
func TestReadOnly(t *testing.T) {
	s := newShop(t, 1, &Options{Token: secret})
	for _, path := range []string{"/api/actions/pause", "/api/token", "/", "/api/live"} {
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
			resp, text := s.request(method, path, "{}", "Authorization", "Bearer "+secret, actionHeader, "1", "Content-Type", "application/json")
			if resp.StatusCode != http.StatusMethodNotAllowed || !strings.Contains(text, "this dashboard only reads") {
				t.Errorf("%s %s: %d %s", method, path, resp.StatusCode, text)
			}
		}
	}
}

func TestHosts(t *testing.T) {
	s := newShop(t, 1, &Options{Hosts: []string{"localhost", "::1", "shop.example.com"}})
	for host, code := range map[string]int{
		"localhost:8080": 200, "LOCALHOST": 200, "[::1]:8080": 200, "shop.example.com": 200,
		"evil.example.com": 421, "localhost.evil.example.com:8080": 421, "127.0.0.1:8080": 421,
	} {
		if resp, _ := s.request("GET", "/", "", "Host", host); resp.StatusCode != code {
			t.Errorf("%s: %d, want %d", host, resp.StatusCode, code)
		}
	}
}

// A foreign page cannot even make the server work.
func TestForeignPagesCannotAsk(t *testing.T) {
	s := newShop(t, 1, nil)
	for site, code := range map[string]int{"cross-site": 403, "same-site": 403, "same-origin": 200, "none": 200} {
		if resp, _ := s.request("GET", "/api/events?stream=orders", "", "Sec-Fetch-Site", site); resp.StatusCode != code {
			t.Errorf("%s: %d, want %d", site, resp.StatusCode, code)
		}
	}
	if resp, _ := s.request("GET", "/", "", "Sec-Fetch-Site", "cross-site"); resp.StatusCode != http.StatusOK { // a link
		t.Errorf("the page itself: %d", resp.StatusCode)
	}
}

// Under a prefix every address of the page is relative to the prefix.
func TestPrefix(t *testing.T) {
	s := newShop(t, 1, nil)
	mux := http.NewServeMux()
	mux.Handle("/ops/shop", http.StripPrefix("/ops/shop", Handler(s.app, nil)))
	mux.Handle("/ops/shop/", http.StripPrefix("/ops/shop", Handler(s.app, nil)))
	s.server.Config.Handler = mux
	if resp, _ := s.request("GET", "/ops/shop", ""); resp.StatusCode != http.StatusPermanentRedirect || resp.Header.Get("Location") != "./shop/" {
		t.Errorf("%d %q", resp.StatusCode, resp.Header.Get("Location"))
	}
	_, text := s.request("GET", "/ops/shop/", "")
	if strings.Contains(text, `="/`) || !strings.Contains(text, `src="assets/app.js"`) {
		t.Errorf("addresses in %s", text)
	}
	for _, path := range []string{"/ops/shop/assets/app.js", "/ops/shop/api/events?stream=orders"} {
		if resp, _ := s.request("GET", path, ""); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
}

func TestWhoMayAct(t *testing.T) {
	right := []string{"Authorization", "Bearer " + secret, actionHeader, "1"}
	tests := []struct {
		name    string
		headers []string
		code    int
	}{
		{"the page", append([]string{"Origin", "http://example.com", "Sec-Fetch-Site", "same-origin"}, right...), 0},
		{"a script", right, 0},
		{"the page behind a proxy that has a password", []string{"Authorization", "Basic eDp5", tokenHeader, secret, actionHeader, "1"}, 0},
		{"another token from the page", []string{tokenHeader, secret + "!", actionHeader, "1"}, 401},
		{"no token", []string{actionHeader, "1"}, 401},
		{"an empty token", []string{actionHeader, "1", "Authorization", "Bearer "}, 401},
		{"another token", []string{actionHeader, "1", "Authorization", "Bearer " + secret + "!"}, 401},
		{"a part of the token", []string{actionHeader, "1", "Authorization", "Bearer " + secret[:5]}, 401},
		{"another scheme", []string{actionHeader, "1", "Authorization", "Basic " + secret}, 401},
		{"no header of the page", right[:2], 403},
		{"another site", append([]string{"Sec-Fetch-Site", "cross-site"}, right...), 403},
		{"another port of the host", append([]string{"Sec-Fetch-Site", "same-site"}, right...), 403},
		{"another origin, of an old browser", append([]string{"Origin", "http://evil.example.com"}, right...), 403},
		{"no origin", append([]string{"Origin", "null"}, right...), 403},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := newGuard(Options{AllowActions: true, Token: secret})
			r := httptest.NewRequest(http.MethodPost, "http://example.com/api/actions/pause", nil)
			for i := 0; i < len(tt.headers); i += 2 {
				r.Header.Set(tt.headers[i], tt.headers[i+1])
			}
			if code, err := g.admit(r); code != tt.code || (err == nil) != (code == 0) {
				t.Errorf("got %d, %v, want %d", code, err, tt.code)
			}
		})
	}
}

// An address that guesses is refused after a few tokens, even with the right one, until a minute is
// over; other addresses are not.
func TestGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(Options{AllowActions: true, Token: secret})
		try := func(from, token string) int {
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			r.RemoteAddr = from
			r.Header.Set(actionHeader, "1")
			r.Header.Set("Authorization", "Bearer "+token)
			code, _ := g.admit(r)
			return code
		}
		for i := range 10 {
			if code := try("[2001:db8::1]:4000", "wrong"); code != http.StatusUnauthorized {
				t.Fatalf("guess %d: %d", i, code)
			}
		}
		if a, b, c := try("[2001:db8::1]:4000", secret), try("[2001:db8::2]:4001", secret), try("192.0.2.1:5000", secret); a != 429 || b != 429 || c != 0 {
			t.Errorf("the guesser %d, its neighbour %d, another %d", a, b, c)
		}
		time.Sleep(time.Minute)
		if code := try("[2001:db8::1]:4000", secret); code != 0 {
			t.Errorf("a minute later: %d", code)
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts *Options
		err  string
	}{
		{"none", nil, ""},
		{"defaults", &Options{}, ""},
		{"actions", &Options{AllowActions: true, Token: secret}, ""},
		{"no token", &Options{AllowActions: true}, "actions need a token"},
		{"a short token", &Options{AllowActions: true, Token: "short"}, "the token for actions has 5 characters, at least 16 are needed"},
		{"a token that no header can have", &Options{AllowActions: true, Token: "schöne lange wörter"}, "the token for actions has more than letters, digits and signs of ASCII, or a space at its ends: no browser could send it"},
		{"a token with a space at its end", &Options{AllowActions: true, Token: secret + " "}, "the token for actions has more than letters, digits and signs of ASCII, or a space at its ends: no browser could send it"},
		{"too often", &Options{Every: time.Millisecond}, "looking every 1ms is too often: at least 500ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.opts.Check()
			if got := textOf(err); got != tt.err {
				t.Errorf("got %q, want %q", got, tt.err)
			}
			defer func() {
				if v := recover(); (v != nil) != (tt.err != "") {
					t.Errorf("panic: %v", v)
				}
			}()
			Handler(runnel.New("shop", nil), tt.opts)
		})
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Without TLS a browser names other origins only in the header Origin.
func TestForeignOriginsCannotAsk(t *testing.T) {
	s := newShop(t, 1, &Options{})
	for origin, code := range map[string]int{"http://evil.example.com": 403, "null": 403, s.server.URL: 200} {
		if resp, _ := s.request("GET", "/api/events?stream=orders", "", "Origin", origin); resp.StatusCode != code {
			t.Errorf("%s: %d, want %d", origin, resp.StatusCode, code)
		}
	}
}
