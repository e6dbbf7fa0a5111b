package webhook_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/embedded"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/webhook"
)

const rootToken = "root-of-the-tests-4711"

// A site is a bus with its HTTP API.
type site struct {
	*testing.T
	app     *runnel.App
	bus     *webhook.Bus
	url     string
	redis   string
	log     *redistest.Log
	headers []string // of all requests, in pairs
}

// newSite starts a site without a worker, on the server at a URL, "" for one inside the process.
func newSite(t *testing.T, redis string, opts webhook.Options) *site {
	t.Helper()
	if redis == "" {
		server, err := embedded.Start("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Close)
		redis = "redis://" + server.Addr()
	}
	s := &site{T: t, redis: redis, log: &redistest.Log{}}
	s.app = runnel.New("shop", &runnel.Options{
		RedisURL: redis, Logger: slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	t.Cleanup(func() { s.app.Close() })
	opts.RootToken, opts.AllowAddresses = rootToken, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	if opts.Partitions == 0 {
		opts.Partitions = 4
	}
	s.bus = webhook.New(s.app, "bus", &opts)
	server := httptest.NewServer(s.bus)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *site) token(client string, roles ...webhook.Role) string {
	s.Helper()
	token, err := s.bus.AddToken(s.Context(), client, roles...)
	s.must(err)
	return token
}

// ask makes a request with a token, "" for none, and headers in pairs.
func (s *site) ask(token, method, path, body string, headers ...string) (*http.Response, string) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	s.must(err)
	if token != "" {
		r.SetBasicAuth(token, "x")
	}
	headers = append(headers, s.headers...)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	s.must(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	s.must(err)
	if h := resp.Header; h.Get("Cache-Control") != "no-store" || h.Get("Content-Type") != "application/json" {
		s.Errorf("%s %s: headers %v", method, path, h)
	}
	if said := (struct{ Error string }{}); resp.StatusCode >= 400 && method != http.MethodHead && (json.Unmarshal(text, &said) != nil || said.Error == "") {
		s.Errorf("%s %s: %d without an error: %s", method, path, resp.StatusCode, text)
	}
	return resp, string(text)
}

// want makes a request and wants a status.
func (s *site) want(code int, token, method, path, body string, headers ...string) string {
	s.Helper()
	resp, text := s.ask(token, method, path, body, headers...)
	if resp.StatusCode != code {
		s.Errorf("%s %s %.80s: got %d %s, want %d", method, path, body, resp.StatusCode, text, code)
	}
	return text
}

// topic returns what is known of a topic.
func (s *site) topic(name string) webhook.Topic {
	s.Helper()
	all, err := s.bus.Topics(s.Context())
	s.must(err)
	for _, t := range all {
		if t.Name == name {
			return t
		}
	}
	return webhook.Topic{}
}

// rows returns what GET /subscribers says, by subscriber.
func (s *site) rows(token string) map[string]map[string]any {
	s.Helper()
	var all []map[string]any
	s.must(json.Unmarshal([]byte(s.want(200, token, "GET", "/subscribers", "")), &all))
	rows := map[string]map[string]any{}
	for _, row := range all {
		rows[fmt.Sprint(row["subscriber"])] = row
	}
	return rows
}

// audit returns what operators have done, the newest first.
func (s *site) audit() []inspect.AuditState {
	s.Helper()
	c, err := appview.Of(s.app).Client()
	s.must(err)
	all, err := inspect.Audit(s.Context(), c, 100)
	s.must(err)
	return all
}

const anEvent = `{"type":"update","url":"https://x/1"}`

func subscription(topics string) string {
	return `{"topics":["` + topics + `"],"callback":"https://mail.example/secret/path"}`
}
