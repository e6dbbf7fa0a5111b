package buses_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/internal/buses"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/servers"
	"github.com/runnel-go/runnel/webhook"
)

func init() { extension.Known(buses.New(nil, nil)) } // as the runnel binary does

// A post is an app with the bus mails, a worker of it, and a receiver.
type post struct {
	t        *testing.T
	url      string
	receiver *httptest.Server
	status   atomic.Int32 // of its answers
}

// opened returns a post whose worker runs. Dead letters come after one attempt.
func opened(t *testing.T, addr string) *post {
	p := &post{t: t, url: "redis://" + addr}
	p.status.Store(http.StatusNoContent)
	p.receiver = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(p.status.Load())) }))
	t.Cleanup(p.receiver.Close)
	return p
}

func (p *post) work() {
	app := runnel.New("post", &runnel.Options{LogLevel: "error", RedisURL: p.url})
	p.t.Cleanup(func() { app.Close() })
	webhook.New(app, "mails", &webhook.Options{
		Partitions: 3, AllowHTTP: true, AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Retry: &runnel.Retry{Max: 1, MinBackoff: 10 * time.Millisecond},
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	p.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			p.t.Error(err)
		}
	})
	redistest.Eventually(p.t, "the worker is ready", func() bool { return app.Ready() == nil })
}

// run runs a command without the app's code; it must end with the code and print the text.
func (p *post) run(code int, want string, args ...string) string {
	p.t.Helper()
	var out, errs bytes.Buffer
	got := cli.Main(context.Background(), nil, append(args, "--app", "post", "--redis-url", p.url), strings.NewReader(""), &out, &errs)
	if got != code || !strings.Contains(out.String()+errs.String(), want) {
		p.t.Errorf("%q: code %d, want %d and %q:\n%s%s", args, got, code, want, out.String(), errs.String())
	}
	return out.String()
}

func parse[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// one returns a subscriber.
func (p *post) one(name string) (s buses.SubscriberState) {
	p.t.Helper()
	return parse[buses.SubscriberState](p.t, p.run(0, "", "webhook", "subs", name, "--output", "json"))
}

func (p *post) publish(topic string) {
	p.t.Helper()
	p.run(0, "published as "+topic+"/", "webhook", "publish", topic, `{"type":"update","url":"https://x/1","data":{"a":1}}`, "--client", "shop")
}

var allowed = []string{"--allow-http", "--allow", "127.0.0.0/8"}

func (p *post) subscribe(name string, args ...string) string {
	p.t.Helper()
	args = append([]string{"webhook", "subscribe", name, p.receiver.URL + "/hooks/T0K3N"}, args...)
	return p.run(0, name+" is subscribed to", append(args, append(allowed, "--timeout", "0s")...)...)
}

func TestCommandsOfBuses(t *testing.T) {
	servers.Both(t, func(t *testing.T, addr string, _ bool) {
		p := opened(t, addr)
		p.run(1, "has nothing of webhook: start one with `webhook serve`", "webhook", "subs")
		p.work()
		p.subscriptions()
		p.failures()
		p.topics()
		p.tokens()
		for _, secret := range []string{"T0K3N", "whsec_", "us3r"} {
			if all := p.run(0, "webhook subscribe", "audit", "ls", "--output", "json") + p.run(0, "", "webhook", "subs", "mail", "--output", "json"); strings.Contains(all, secret) {
				t.Errorf("%s shows", secret)
			}
		}
	})
}

func (p *post) subscriptions() {
	t := p.t
	p.run(2, "it takes CLIENT CALLBACK TOPIC..., not", "webhook", "subscribe", "mail", "https://mail.example/")
	p.run(1, "format \"xml\" is not known", "webhook", "subscribe", "mail", "https://mail.example/", "orders", "--format", "xml")
	p.run(2, "is no range of addresses", "webhook", "subscribe", "mail", "https://mail.example/", "orders", "--allow", "here")
	p.run(1, "begins with http://, which is not allowed", "webhook", "subscribe", "mail", "http://mail.example/", "orders")
	p.run(1, `the app has no bus "x"`, "webhook", "subs", "--bus", "x")
	if out := p.subscribe("mail", "orders", "customers", "--secret", "--uuid", "us3r"); !strings.Contains(out, "\nwhsec_") {
		t.Errorf("no secret in %q", out)
	}
	p.subscribe("mail", "orders", "customers", "--secret") // another one, beside which the one before signs
	p.publish("orders")
	p.run(2, "as which client? say --client NAME", "webhook", "publish", "orders", `{}`)
	p.run(1, "type \"\" is none of", "webhook", "publish", "orders", `{}`, "--client", "shop")
	p.run(1, "unknown field \"typ\"", "webhook", "publish", "orders", `{"typ":"x"}`, "--client", "shop")
	p.run(1, "belongs to another publisher", "webhook", "publish", "orders", `{"type":"update","url":"https://x/1"}`, "--client", "other")
	redistest.Eventually(t, "it is delivered", func() bool { return p.one("mail").Sent == 1 })
	s := p.one("mail")
	if s.State != "ok" || s.Queued != 0 || !s.Signed || s.UUID || s.Host != strings.TrimPrefix(p.receiver.URL, "http://") || len(s.Topics) != 2 || s.Status != 204 || s.Last.IsZero() || s.Attempt != 0 {
		t.Errorf("%+v %+v", s, s.SubscriberDetails)
	}
	p.run(0, "pause of processor:mails/mail", "pause", "mails/mail", "--why", "repairs", "--wait")
	p.publish("orders")
	p.run(0, "1 paused", "status", "--all")
	p.run(0, "repairs", "webhook", "subs", "mail")
	if s := p.one("mail"); s.State != "paused" || s.Why != "repairs" || s.Queued != 1 || s.Oldest.IsZero() {
		t.Errorf("%+v", s)
	}
	p.run(0, "OK", "check")
	p.run(3, "mails/mail is paused: repairs, and an event has been queued for ", "check", "--max-age", "1ms")
	p.run(3, "mails/mail is paused: repairs, and has 1 event queued, above 0", "check", "--max-lag", "0")
	p.run(1, "keeps its own pauses", "block", "mails/mail", "--as-admin")
	p.run(0, "is removed", "resume", "mails/mail")
	redistest.Eventually(t, "it goes on", func() bool { return p.one("mail").Sent == 2 })
	p.run(1, `there is no subscriber "x"`, "webhook", "subs", "x")
	p.run(1, "has no part", "dead", "ls", "mails/x")
}

// failures has a subscriber that fails, with a dead letter, and one that is disabled.
func (p *post) failures() {
	t := p.t
	p.status.Store(http.StatusTeapot)
	p.subscribe("bad", "bills")
	p.publish("bills")
	redistest.Eventually(t, "it is dead", func() bool { return p.one("bad").Dead == 1 })
	dead := parse[[]extension.Failure](t, p.run(0, "", "dead", "ls", "mails/bad", "--output", "json"))
	if len(dead) != 1 || dead[0].Key != "https://x/1" || dead[0].State != extension.Dead || !strings.Contains(dead[0].Error, "418") {
		t.Errorf("%+v", dead)
	}
	p.run(0, "mails/bad", "dead", "ls")
	p.run(0, `"https://x/1"`, "dead", "show", "mails/bad", "--id", dead[0].ID)
	p.run(1, "publish the event anew", "dead", "retry", "mails/bad")
	p.run(0, "[]", "dead", "ls", "mails/mail", "--output", "json")
	p.run(0, "1 dead event dropped", "dead", "drop", "mails/bad", "--all", "--yes")
	p.run(0, "[]", "dead", "ls", "mails/bad", "--output", "json")
	p.status.Store(http.StatusGone)
	p.publish("bills")
	redistest.Eventually(t, "it is disabled", func() bool { return p.one("bad").State == "disabled" })
	p.publish("bills")
	p.run(3, "mails/bad is disabled: ", "check")
	p.run(3, "problem  webhook: mails/bad is disabled", "doctor")
	all := parse[[]buses.SubscriberState](t, p.run(0, "", "webhook", "subs", "--failing", "--output", "json"))
	if len(all) != 1 || all[0].Subscriber != "bad" || all[0].Queued != 1 {
		t.Errorf("%+v", all)
	}
	p.status.Store(http.StatusNoContent)
	p.run(0, "", "resume", "mails/bad")
	redistest.Eventually(t, "it goes on", func() bool { return p.one("bad").Sent == 1 })
	p.run(2, "say --yes", "webhook", "unsubscribe", "bad")
	p.run(0, "bad gets nothing more of bills than what is queued", "webhook", "unsubscribe", "bad", "bills", "--yes")
	p.run(0, "the client bad is forgotten", "webhook", "unsubscribe", "bad", "--yes")
	p.run(1, "there is no such subscriber", "webhook", "unsubscribe", "bad", "--yes")
}

func (p *post) topics() {
	topics := parse[[]buses.TopicState](p.t, p.run(0, "", "webhook", "topics", "--output", "json"))
	if len(topics) != 3 || topics[1].Topic != "customers" || topics[2].Topic != "orders" || topics[2].Publisher != "shop" || topics[2].Events != 2 || topics[2].Length != 2 {
		p.t.Errorf("%+v", topics)
	}
	p.run(0, "topic bills is removed", "webhook", "topic", "rm", "bills", "--yes")
	p.run(1, "there is no such topic", "webhook", "topic", "rm", "bills", "--yes")
}

func (p *post) tokens() {
	p.run(1, "is none of publish, subscribe and read", "webhook", "token", "add", "shop", "--role", "root")
	added := parse[buses.BusChange](p.t, p.run(0, "", "webhook", "token", "add", "shop", "--output", "json"))
	p.run(0, "grafana has a token", "webhook", "token", "add", "grafana", "--role", "read")
	list := p.run(0, "publish, subscribe", "webhook", "token", "ls")
	if !strings.HasPrefix(added.Made, "shop--") || strings.Contains(list, added.Made) || strings.Count(list, "\n") != 3 {
		p.t.Errorf("%+v, listed as %s", added, list)
	}
	p.run(0, " is removed", "webhook", "token", "rm", added.Made, "--yes")
	p.run(1, "no such token", "webhook", "token", "rm", added.Made, "--yes")
	id := parse[[]buses.TokenState](p.t, p.run(0, "", "webhook", "token", "ls", "--output", "json"))[0].ID
	p.run(0, "the token "+id+" is removed", "webhook", "token", "rm", id, "--yes")
	if audit := p.run(0, "", "audit", "ls", "--output", "json"); strings.Contains(audit, added.Made) {
		p.t.Error("the audit stream has a token")
	}
}
