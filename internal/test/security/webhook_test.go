package security

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/webhook"
)

// posted is an app with a webhook bus, for one user.
func posted(t *testing.T, url, layout string) (*runnel.App, *webhook.Bus) {
	app := runnel.New("shop", &runnel.Options{RedisURL: url, KeyLayout: runnel.KeyLayout(layout), LogLevel: "error"})
	t.Cleanup(func() { app.Close() })
	return app, webhook.New(app, "bus", &webhook.Options{
		Partitions: 2, Keep: 5, JoinDelay: time.Millisecond, AllowHTTP: true, AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Retry: &runnel.Retry{Max: 1, MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond},
	})
}

// A mailroom is a guarded server, a worker with a bus on it, and receivers: one takes all, one nothing.
type mailroom struct {
	*testing.T
	url    func(role string) string
	layout string
	took   atomic.Int64 // requests
	host   string       // of the receivers
}

func newMailroom(t *testing.T, layout, of string) *mailroom {
	server, admin := guarded(t, layout)
	for _, line := range block(t, layout+", bus") {
		do(t, admin, line)
	}
	m := &mailroom{T: t, layout: of, url: func(role string) string { return urlOf(server, "shop-"+role) }}
	receivers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "bad") {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		m.took.Add(1)
	}))
	t.Cleanup(receivers.Close)
	m.host = strings.TrimPrefix(receivers.URL, "http://")
	_, bus := posted(t, server.URL(), of)
	for _, name := range []string{"mail", "bad"} {
		err := bus.Subscribe(t.Context(), webhook.Subscription{Client: name, Callback: receivers.URL + "/" + name, Topics: []string{"orders"}, Timeout: -1})
		if err != nil {
			t.Fatal(err)
		}
	}
	worker, _ := posted(t, m.url("worker"), of)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return m
}

// ask runs a command as a role. The code is 0 if all is well.
func (m *mailroom) ask(role string, args ...string) (code int, out string) {
	m.Helper()
	app, _ := posted(m.T, m.url(role), m.layout)
	var both bytes.Buffer
	code = cli.Main(m.Context(), app, args, strings.NewReader(""), &both, &both)
	return code, both.String()
}

// can wants a role to succeed with a command, which says something.
func (m *mailroom) can(role, says string, args ...string) {
	m.Helper()
	if code, out := m.ask(role, args...); code != 0 || !strings.Contains(out, says) {
		m.Errorf("%s %q: code %d: %s", role, args, code, out)
	}
}

// cannot wants a role to be told that it lacks a right.
func (m *mailroom) cannot(role string, args ...string) {
	m.Helper()
	if code, out := m.ask(role, args...); code != 1 || !strings.Contains(out, "the user of Redis lacks a right") {
		m.Errorf("%s %q: code %d: %s", role, args, code, out)
	}
}

// publish publishes an event as a producer.
func (m *mailroom) publish(url string) {
	m.Helper()
	m.can("producer", "", "webhook", "publish", "orders", `{"type":"update","url":"`+url+`"}`, "--client", "shop")
}

// Buses work with the documented rights of each role. A watcher sees everything and changes nothing, an operator changes what it is asked to.
func TestBusesNeedWhatIsDocumented(t *testing.T) {
	for layout, of := range layouts {
		t.Run(layout, func(t *testing.T) {
			m := newMailroom(t, layout, of)
			m.publish("https://x/1")
			redistest.Eventually(t, "a request", func() bool { return m.took.Load() == 1 })
			redistest.Eventually(t, "a dead letter", func() bool {
				_, out := m.ask("watcher", "dead", "ls", "bus/bad")
				return strings.Contains(out, "https://x/1")
			})
			for _, role := range []string{"watcher", "operator"} {
				m.can(role, "shop", "webhook", "topics")
				m.can(role, "bad", "webhook", "subs")
				m.can(role, m.host, "webhook", "subs", "mail")
				m.can(role, "answered 500", "dead", "ls", "bus/bad")
				m.can(role, "2 subscribers", "status")
			}
			for _, change := range []string{
				"pause bus/mail", "resume bus/mail", "pause bus", "webhook unsubscribe mail --yes", "webhook topic rm orders --yes",
				"webhook subscribe crm https://mail.example/ orders --yes", "webhook token add shop --yes", "webhook token ls",
			} {
				m.cannot("watcher", strings.Fields(change)...)
			}

			m.can("operator", "pause of processor:bus/mail", "pause", "bus/mail")
			m.can("watcher", "paused", "webhook", "subs", "mail")
			m.publish("https://x/2")
			redistest.Eventually(t, "another dead letter", func() bool {
				_, out := m.ask("watcher", "dead", "ls", "bus/bad")
				return strings.Contains(out, "https://x/2")
			})
			if n := m.took.Load(); n != 1 {
				t.Errorf("%d requests to who is paused", n)
			}
			m.can("operator", "is removed", "resume", "bus/mail")
			redistest.Eventually(t, "what has waited", func() bool { return m.took.Load() == 2 })
			m.can("operator", "token", "webhook", "token", "add", "shop")
			m.can("operator", "shop", "webhook", "token", "ls")
			m.can("operator", "bad", "webhook", "unsubscribe", "bad", "--yes")
			m.can("operator", "whsec_", "webhook", "subscribe", "crm", "http://"+m.host+"/crm", "orders", "--secret", "--yes")
			m.changes()
		})
	}
}

// changes does as a worker what the HTTP API does.
func (m *mailroom) changes() {
	m.Helper()
	_, bus := posted(m.T, m.url("worker"), m.layout)
	ctx := m.Context()
	token, err := bus.AddToken(ctx, "crm")
	if err != nil || token == "" {
		m.Errorf("token %q, %v", token, err)
	}
	for what, err := range map[string]error{
		"subscribe":   bus.Subscribe(ctx, webhook.Subscription{Client: "crm", Callback: "http://" + m.host + "/crm", Topics: []string{"orders", "users"}}),
		"secret":      bus.SetSecret(ctx, "crm", webhook.NewSecret()),
		"pause":       bus.Pause(ctx, "crm", nil),
		"resume":      bus.Resume(ctx, "crm"),
		"unsubscribe": bus.Unsubscribe(ctx, "crm"),
	} {
		if err != nil {
			m.Errorf("%s: %v", what, err)
		}
	}
}
