package webhook_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/webhook"
)

// What each token may do. One that is wrong or revoked may do as little as none; that of another client has all roles.
func TestWhoMayDoWhat(t *testing.T) {
	s := newSite(t, "", webhook.Options{TrustProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	tokens := map[string]string{
		"publish": s.token("shop", webhook.RolePublish), "subscribe": s.token("shop", webhook.RoleSubscribe),
		"read": s.token("shop", webhook.RoleRead), "root": rootToken, "other": s.token("other"), "no": "",
		"wrong": "shop--00000000000000000000000000000000", "revoked": s.token("shop"),
	}
	s.must(s.bus.RemoveToken(t.Context(), tokens["revoked"]))
	as := []string{"no", "publish", "subscribe", "read", "other", "root", "wrong", "revoked"}
	requests := 0
	for _, tt := range []struct {
		method, path, body string
		codes              []int // by as
	}{
		{"POST", "/topics/orders", anEvent, []int{401, 204, 403, 403, 403, 403}},
		{"GET", "/topics", "", []int{401, 200, 200, 200, 200, 200}},
		{"HEAD", "/topics", "", []int{401, 200, 200, 200, 200, 200}},
		{"POST", "/subscription", subscription("orders"), []int{401, 403, 204, 403, 204, 400}},
		{"POST", "/subscriber", subscription("orders"), []int{401, 403, 204, 403, 204, 400}},
		{"POST", "/subscriber?subscriber=shop", subscription("orders"), []int{401, 403, 204, 403, 403, 204}},
		{"GET", "/subscriptions", "", []int{401, 200, 200, 200, 200, 200}},
		{"GET", "/subscribers", "", []int{401, 200, 200, 200, 200, 200}},
		{"POST", "/subscribers/shop/pause", "", []int{401, 403, 204, 403, 403, 204}},
		{"POST", "/subscribers/shop/resume", "", []int{401, 403, 204, 403, 403, 204}},
		{"PUT", "/subscribers/shop/secret", `{"secret":true}`, []int{401, 403, 200, 403, 403, 200}},
		{"DELETE", "/subscriber/topics/none?subscriber=shop", "", []int{401, 403, 404, 403, 403, 404}},
		{"DELETE", "/subscriber/topics/orders?subscriber=shop", "", []int{401, 403, 204, 403, 403, 404}},
		{"DELETE", "/subscriber?subscriber=shop", "", []int{401, 403, 204, 403, 403, 404}},
		{"DELETE", "/subscriber", "", []int{401, 403, 404, 403, 204, 400}},
		{"DELETE", "/topics/orders", "", []int{401, 204, 403, 403, 404, 404}},
		{"GET", "/api_tokens", "", []int{401, 403, 403, 403, 403, 200}},
		{"POST", "/api_tokens", `{"name":"next"}`, []int{401, 403, 403, 403, 403, 201}},
		{"DELETE", "/api_tokens/0123456789abcdef", "", []int{401, 403, 403, 403, 403, 204}},
		{"GET", "/pulse", "", []int{401, 204, 204, 204, 204, 204}},
		{"GET", "/pulse/scaling", "", []int{401, 204, 204, 204, 204, 204}},
		{"GET", "/health", "", []int{200, 200, 200, 200, 200, 200}},
		{"GET", "/health/ping", "", []int{200, 200, 200, 200, 200, 200}},
		{"GET", "/", "", []int{404, 404, 404, 404, 404, 404}},
		{"GET", "/topics/orders/", "", []int{404, 404, 404, 404, 404, 404}},
		{"GET", "//topics", "", []int{404, 404, 404, 404, 404, 404}},
		{"POST", "/subscribers/shop/kick", "", []int{404, 404, 404, 404, 404, 404}},
		{"PUT", "/topics/orders", "", []int{405, 405, 405, 405, 405, 405}},
		{"OPTIONS", "/subscriber", "", []int{405, 405, 405, 405, 405, 405}},
	} {
		for i, who := range as {
			want := tt.codes[0]
			if i < len(tt.codes) {
				want = tt.codes[i]
			}
			requests++ // each from another address: nobody guesses
			resp, text := s.ask(tokens[who], tt.method, tt.path, tt.body, "X-Forwarded-Proto", "https", "X-Forwarded-For", fmt.Sprintf("192.0.%d.%d:4000", requests/256, requests%256))
			if resp.StatusCode != want {
				t.Errorf("%s %s as %s: got %d %s, want %d", tt.method, tt.path, who, resp.StatusCode, text, want)
			}
			if resp.StatusCode == 401 && resp.Header.Get("WWW-Authenticate") != `Basic realm="bus"` || resp.StatusCode == 405 && resp.Header.Get("Allow") == "" {
				t.Errorf("%s %s as %s: headers %v", tt.method, tt.path, who, resp.Header)
			}
		}
	}
}

// A wrong token is refused everywhere, and so is a revoked one: at once by who has revoked it, by others within a second.
func TestWrongAndRevokedTokens(t *testing.T) {
	s := newSite(t, "", webhook.Options{})
	token := s.token("shop")
	s.want(204, token, "GET", "/pulse", "")
	s.want(204, "", "GET", "/pulse", "", "Authorization", "bearer "+token)
	for _, wrong := range []string{"wrong", token + "0", token[:len(token)-1], "shop"} {
		s.want(401, wrong, "GET", "/pulse", "")
	}
	all, err := s.bus.Tokens(t.Context())
	s.must(err)
	if len(all) != 1 || all[0].Client != "shop" || !slices.Equal(all[0].Roles, []webhook.Role{webhook.RolePublish, webhook.RoleSubscribe}) || !strings.HasPrefix(token, "shop--") || len(token) != len("shop--")+32 {
		t.Errorf("got %+v", all)
	}
	if text := s.want(200, rootToken, "GET", "/api_tokens", ""); strings.Contains(text, token) || !strings.Contains(text, `"name":"shop","roles":["publish","subscribe"],"token":"`+all[0].ID+`"`) {
		t.Errorf("got %s", text)
	}

	other := newSite(t, s.redis, webhook.Options{})
	other.want(204, token, "GET", "/pulse", "")
	s.must(s.bus.RemoveToken(t.Context(), all[0].ID))
	s.want(401, token, "GET", "/pulse", "")
	time.Sleep(1100 * time.Millisecond)
	other.want(401, token, "GET", "/pulse", "")
	s.want(204, rootToken, "GET", "/api_tokens", "")
	if err := s.bus.RemoveToken(t.Context(), all[0].ID); err == nil {
		t.Error("removed twice")
	}
}

// Tokens of one's own are for who comes from elsewhere.
func TestOwnTokens(t *testing.T) {
	s := newSite(t, "", webhook.Options{})
	const own = "mail--f1a5c0de-0000-4711"
	if text := s.want(201, rootToken, "POST", "/api_tokens", `{"name":"mail","token":"`+own+`","roles":["read"]}`); text != `{"name":"mail","token":"`+own+"\"}\n" {
		t.Errorf("got %s", text)
	}
	s.want(200, own, "GET", "/subscribers", "")
	for body, code := range map[string]int{
		`{"name":"mail","token":"` + own + `"}`: 409, `{"name":"mail","token":"` + rootToken + `"}`: 409, `{"name":"mail","token":"short"}`: 400,
		`{"name":"mail","token":"with a space in between"}`: 400, `{"name":"mail","roles":["admin"]}`: 400, `{"name":"m m"}`: 400, `{}`: 400,
		`{"name":"mail","x":1}`: 400, `{"name":1}`: 400, `[]`: 400, ``: 400, `null`: 400, `{"name":"mail"}{}`: 400,
	} {
		s.want(code, rootToken, "POST", "/api_tokens", body)
	}
	s.want(204, rootToken, "DELETE", "/api_tokens/"+own, "")
	s.want(401, own, "GET", "/subscribers", "")
	if all, err := s.bus.Tokens(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("got %v, %v", all, err)
	}
}

// Whoever guesses is refused after ten tokens, even with the right one; others are not.
func TestGuessing(t *testing.T) {
	s := newSite(t, "", webhook.Options{TrustProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	token := s.token("shop")
	from := func(at string) []string {
		return []string{"X-Forwarded-For", "203.0.113.9, " + at, "X-Forwarded-Proto", "https"}
	}
	for range 10 {
		s.want(401, "wrong", "GET", "/topics", "", from("192.0.2.1")...)
	}
	if resp, text := s.ask(token, "GET", "/topics", "", from("192.0.2.1")...); resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "60" {
		t.Errorf("got %d %s", resp.StatusCode, text)
	}
	s.want(200, token, "GET", "/topics", "", from("192.0.2.2")...)
	s.want(200, token, "GET", "/topics", "", from("127.0.0.9, 192.0.2.3")...)
}

// Without TLS a request is refused before anything of it is looked at, unless it comes from this machine or a proxy that has TLS.
func TestPlainHTTP(t *testing.T) {
	trusted := webhook.Options{TrustProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.2/32")}}
	for _, tt := range []struct {
		name, remote, proto string
		opts                webhook.Options
		tls                 bool
		code                int
	}{
		{"plain", "192.0.2.1:1", "", webhook.Options{}, false, 403},
		{"plain, and lies", "192.0.2.1:1", "https", trusted, false, 403},
		{"TLS", "192.0.2.1:1", "", webhook.Options{}, true, 200},
		{"loopback", "127.0.0.1:1", "", webhook.Options{}, false, 200},
		{"loopback of IPv6", "[::1]:1", "", webhook.Options{}, false, 200},
		{"proxy", "10.1.1.1:1", "https", trusted, false, 200},
		{"proxy in IPv6", "[::ffff:10.1.1.1]:1", "HTTPS", trusted, false, 200},
		{"proxy without TLS", "10.1.1.1:1", "http", trusted, false, 403},
		{"proxy that says nothing", "10.1.1.1:1", "", trusted, false, 403},
		{"proxy on the loopback without TLS", "127.0.0.2:1", "http", trusted, false, 403},
		{"allowed", "192.0.2.1:1", "", webhook.Options{AllowHTTP: true}, false, 200},
		{"no address", "@", "", webhook.Options{}, false, 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, "", tt.opts)
			r := httptest.NewRequest("GET", "/topics", nil)
			r.RemoteAddr = tt.remote
			r.SetBasicAuth(rootToken, "x")
			if tt.proto != "" {
				r.Header.Set("X-Forwarded-Proto", tt.proto)
			}
			if tt.tls {
				r.TLS = &tls.ConnectionState{}
			}
			w := httptest.NewRecorder()
			s.bus.ServeHTTP(w, r)
			if w.Code != tt.code || tt.code == 403 && !strings.Contains(w.Body.String(), "use https") {
				t.Errorf("got %d %s, want %d", w.Code, w.Body, tt.code)
			}
		})
	}
}

// A page of another origin cannot use what a browser remembers.
func TestOtherOrigins(t *testing.T) {
	s := newSite(t, "", webhook.Options{})
	s.want(403, rootToken, "POST", "/api_tokens", `{"name":"evil"}`, "Sec-Fetch-Site", "cross-site")
}

func TestUnderAPrefix(t *testing.T) {
	s := newSite(t, "", webhook.Options{})
	mux := http.NewServeMux()
	mux.Handle("/events/", http.StripPrefix("/events", s.bus))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.url = server.URL + "/events"
	token := s.token("shop")
	s.want(204, token, "POST", "/topics/orders", anEvent)
	s.want(200, token, "GET", "/topics", "")
	s.want(404, token, "GET", "/", "")
	s.want(404, token, "GET", "/nothing", "")
}

// A handler that panics is answered 500, and the server goes on.
func TestPanic(t *testing.T) {
	s := newSite(t, "", webhook.Options{})
	r := httptest.NewRequest("POST", "/topics/orders", io.NopCloser(broken{}))
	r.RemoteAddr = "127.0.0.1:1"
	r.SetBasicAuth(s.token("shop"), "x")
	w := httptest.NewRecorder()
	s.bus.ServeHTTP(w, r)
	if w.Code != 500 || strings.Contains(w.Body.String(), "s3cr3t") || strings.Contains(s.log.String(), "s3cr3t") || !strings.Contains(s.log.String(), "handler panicked") {
		t.Errorf("got %d %s\n%s", w.Code, w.Body, s.log)
	}
}

// An app that cannot begin answers so.
func TestAppThatCannotBegin(t *testing.T) {
	app := runnel.New("shop", &runnel.Options{RedisURL: "nonsense"})
	bus := webhook.New(app, "bus", &webhook.Options{RootToken: rootToken})
	for _, token := range []string{rootToken, "unknown"} {
		r, w := httptest.NewRequest("GET", "/topics", nil), httptest.NewRecorder()
		r.RemoteAddr = "127.0.0.1:1"
		r.SetBasicAuth(token, "x")
		if bus.ServeHTTP(w, r); w.Code != 500 || !strings.Contains(w.Body.String(), "internal error") {
			t.Errorf("%s: got %d %s", token, w.Code, w.Body)
		}
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { panic("s3cr3t") }

// What root does is in the audit stream, what clients do themselves is not.
func TestAudit(t *testing.T) {
	s := newSite(t, "", webhook.Options{})
	s.headers = []string{"X-Forwarded-For", "192.0.2.1"} // is believed of nobody
	token := s.token("mail")
	s.want(204, token, "POST", "/subscription", subscription("orders"))
	s.want(204, token, "POST", "/topics/orders", anEvent)
	s.want(204, rootToken, "DELETE", "/subscriber?subscriber=mail", "")
	s.want(204, rootToken, "DELETE", "/topics/orders", "")
	s.want(201, rootToken, "POST", "/api_tokens", `{"name":"next"}`)
	s.want(204, rootToken, "DELETE", "/api_tokens/"+token, "")
	var got []string
	for _, one := range s.audit() {
		got = append(got, fmt.Sprint(one.Who, " ", one.From, " ", one.What, " ", one.On, " ", one.Outcome))
		if strings.Contains(fmt.Sprint(one), token) {
			t.Errorf("the audit shows a token: %+v", one)
		}
	}
	if len(got) != 4 || got[3] != "root 127.0.0.1 webhook/unsubscribe bus/mail done" || got[2] != "root 127.0.0.1 webhook/topic-rm bus/orders done" ||
		got[1] != "root 127.0.0.1 webhook/token-add bus/next done" || !strings.HasPrefix(got[0], "root 127.0.0.1 webhook/token-rm bus/") {
		t.Errorf("got %q", got)
	}
}
