package webhook_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/webhook"
)

// What is wrong with an event is said, and nothing is appended, not even what is right.
func TestBadEvents(t *testing.T) {
	s := newSite(t, "", webhook.Options{MaxData: 100})
	token := s.token("shop")
	for _, tt := range []struct {
		body string
		code int
		says string
	}{
		{``, 400, "not a JSON object"}, {`null`, 400, "not a JSON object"}, {`"text"`, 400, "not a JSON object"}, {`{`, 400, "not a JSON object"}, {`[`, 400, "not JSON"}, {`[]`, 400, "0 events"},
		{`{}`, 400, "type"}, {`{"type":"update"}`, 400, "url"}, {`{"url":"https://x/1"}`, 400, "type"},
		{`{"type":"upsert","url":"https://x/1"}`, 400, `type "upsert" is none of create`}, {`{"type":1,"url":"https://x/1"}`, 400, "field type: "},
		{`{"type":"update","url":"http://x/1"}`, 400, "https://"}, {`{"type":"update","url":"https://x/1?a=b"}`, 400, "query"}, {`{"type":"update","url":"/1"}`, 400, "absolute"},
		{`{"type":"update","url":"https://x/1","topic":"orders"}`, 400, `unknown field "topic"`}, {`{"Type":"update","url":"https://x/1"}`, 400, `unknown field "Type"`},
		{`{"type":"update","url":"https://x/1","from":"0-0"}`, 400, "unknown field"},
		{anEvent + anEvent, 400, "not a JSON object"}, {anEvent + `x`, 400, "not a JSON object"}, {`[` + anEvent + `]]`, 400, "not JSON"}, {`[` + anEvent + `,1]`, 400, "event 1: "},
		{`{"type":"update","url":"https://x/1","timestamp":"now"}`, 400, "field timestamp: not a whole number"}, {`{"type":"update","url":"https://x/1","timestamp":1.5}`, 400, "timestamp"},
		{`{"type":"update","url":"https://x/1","timestamp":-1}`, 400, "timestamp"}, {`{"type":"update","url":"https://x/1","timestamp":253402300800000}`, 400, "timestamp"},
		{`{"type":"update","url":"https://x/1","data":"` + strings.Repeat("x", 100) + `"}`, 400, "data has 102 bytes"},
		{"{\"type\":\"update\",\"url\":\"https://x/1\",\"data\":\"\xff\"}", 400, "UTF-8"},
		{`[` + anEvent + `,{"type":"update","url":"https://x/1","more":1}]`, 400, `event 1: unknown field "more"`},
		{`[` + anEvent + `,{"type":"update","url":"ftp://x/1"}]`, 400, "event 1: url"}, {"{\"type\":\"update\",\"url\":\"https://x/\u2028\"}", 400, "line separator"},
		{`[` + strings.Repeat(anEvent+",", 1000) + anEvent + `]`, 400, "1001 events"},
		{`{"type":"update","url":"https://x/1","data":"` + strings.Repeat("x", 64<<10) + `"}`, 413, "65536 bytes"},
		{`[` + strings.Repeat(" ", 4<<20) + anEvent + `]`, 413, "3670016 bytes"},
	} {
		if text := s.want(tt.code, token, "POST", "/topics/orders", tt.body); !strings.Contains(strings.ReplaceAll(text, `\"`, `"`), tt.says) || strings.Contains(text, "event 0") {
			t.Errorf("%.80s: got %s, want %s", tt.body, text, tt.says)
		}
	}
	s.want(400, token, "POST", "/topics/orders", anEvent, "Idempotency-Key", strings.Repeat("x", 201))
	for _, name := range []string{"Orders", "orders2", "or-ders", strings.Repeat("x", 65), "a%2Fb", "%20"} {
		s.want(400, token, "POST", "/topics/"+name, anEvent)
	}
	if all, err := s.bus.Topics(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("there are topics: %v, %v", all, err)
	}
}

// The first client that publishes owns the topic.
func TestOneClientPublishes(t *testing.T) {
	s := newSite(t, "", webhook.Options{})
	shop, other := s.token("shop"), s.token("other")
	for i := range 3 {
		resp, _ := s.ask(shop, "POST", "/topics/orders", `{"type":"create","url":"https://x/1","timestamp":null,"data":null}`)
		got := resp.Header.Get("Runnel-Event")
		if before, after, _ := strings.Cut(got, "-"); resp.StatusCode != 204 || !strings.HasPrefix(before, "orders/") || after != fmt.Sprint(i+1) {
			t.Errorf("got %d, %s", resp.StatusCode, got)
		}
		s.want(403, other, "POST", "/topics/orders", anEvent)
	}
	if topic := s.topic("orders"); topic.Events != 3 || topic.Publisher != "shop" {
		t.Errorf("got %+v", topic)
	}
	if text := s.want(200, other, "GET", "/topics", ""); !strings.HasPrefix(text, `[{"events":3,"length":3,"name":"orders","oldest":`) || !strings.HasSuffix(text, `,"publisher":"shop"}]`+"\n") {
		t.Errorf("got %s", text)
	}
	s.want(403, other, "DELETE", "/topics/orders", "")
	s.want(204, shop, "DELETE", "/topics/orders", "")
	s.want(204, other, "POST", "/topics/orders", anEvent)
}

// An array is appended in order, all of it; a key makes it and its repetition one.
func TestArraysAndKeys(t *testing.T) {
	s := newSite(t, redistest.Start(t).URL(), webhook.Options{})
	token := s.token("shop")
	array := `[` + strings.Repeat(anEvent+",", 999) + anEvent + `]`
	for range 2 {
		if resp, _ := s.ask(token, "POST", "/topics/orders", " \n"+array, "Idempotency-Key", "k"); resp.StatusCode != 204 || !strings.HasSuffix(resp.Header.Get("Runnel-Event"), "-1000") {
			t.Errorf("got %d, %v", resp.StatusCode, resp.Header)
		}
		s.want(204, token, "POST", "/topics/orders", anEvent, "Idempotency-Key", "k")
	}
	if n := s.topic("orders").Events; n != 1001 {
		t.Errorf("%d events, want 1001", n)
	}
	big := `{"type":"update","url":"https://x/` + strings.Repeat("x", 100) + `","data":"` + strings.Repeat("x", 4070) + `"}`
	s.want(413, token, "POST", "/topics/orders", `[`+strings.Repeat(big+",", 992)+big+`]`)
	s.want(204, token, "POST", "/topics/orders", `[`+strings.Repeat(big+",", 849)+big+`]`)
	if n := s.topic("orders").Events; n != 1851 {
		t.Errorf("%d events, want 1851", n)
	}
}

// A full topic refuses, and names who is slowest.
func TestFullTopic(t *testing.T) {
	s := newSite(t, "", webhook.Options{MaxLen: 5, Keep: 2, Overflow: runnel.Reject})
	token := s.token("shop")
	s.want(204, s.token("mail"), "POST", "/subscription", subscription("orders"))
	s.want(204, token, "POST", "/topics/orders", `[`+anEvent+`,`+anEvent+`,`+anEvent+`]`)
	s.want(400, token, "POST", "/topics/orders", `[`+strings.Repeat(anEvent+",", 5)+anEvent+`]`)
	full := func() bool {
		resp, text := s.ask(token, "POST", "/topics/orders", `[`+anEvent+`,`+anEvent+`,`+anEvent+`]`)
		return resp.StatusCode == 503 && resp.Header.Get("Retry-After") == "1" && strings.Contains(text, "topic orders is full, with 3 events: subscriber mail is the slowest")
	}
	if !full() {
		t.Error("a pin does not hold")
	}
	s.run()
	c := redis.NewClient(&redis.Options{Addr: strings.TrimPrefix(s.redis, "redis://")})
	t.Cleanup(func() { c.Close() })
	redistest.Eventually(t, "the owner's hold instead of the pin", func() bool {
		keys, err := c.Keys(t.Context(), "*holder*").Result()
		s.must(err)
		holders := fmt.Sprint(c.HGetAll(t.Context(), keys[0]).Val())
		return strings.Contains(holders, "deliver:") && !strings.Contains(holders, "pin:")
	})
	if !full() {
		t.Error("the slowest subscriber is not named")
	}
	if n := s.topic("orders").Events; n != 3 {
		t.Errorf("%d events, want 3", n)
	}
}

// run starts a worker in the app of the site.
func (s *site) run() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.app.Run(ctx); err != nil {
			s.Errorf("run: %v", err)
		}
	}()
	s.Cleanup(func() {
		cancel()
		<-ended
	})
}

// What is published over HTTP arrives byte for byte as Routemaster's, within a moment.
func TestDeliveredOverHTTP(t *testing.T) {
	server := redistest.Start(t)
	s := newSite(t, server.URL(), webhook.Options{AllowHTTP: true, JoinDelay: time.Millisecond})
	var mu sync.Mutex
	var bodies []string
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if user, pass, _ := r.BasicAuth(); user != "d41d8cd9" || pass != "x" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("got %s:%s, %v", user, pass, r.Header)
		}
		bodies = append(bodies, string(body))
	}))
	t.Cleanup(receiver.Close)
	s.run()
	s.want(204, s.token("mail"), "POST", "/subscription", `{"topics":["orders"],"callback":"`+receiver.URL+`/hook","uuid":"d41d8cd9","timeout":0}`)
	token := s.token("shop")
	for i, tt := range []struct{ event, body string }{
		{`{"url":"https://x/1","type":"create","timestamp":1500000000000}`, `[{"topic":"orders","type":"create","url":"https://x/1","t":1500000000000}]`},
		{`{"timestamp":0,"data":null,"url":"https://x/<1>&2","type":"noop"}`, `[{"topic":"orders","type":"noop","url":"https://x/<1>&2","t":0}]`},
		{`{"data":{"b": [1, null], "a": "<ü>"},"url":"https://x/1","type":"delete","timestamp":1}`, `[{"topic":"orders","type":"delete","url":"https://x/1","t":1,"data":{"b":[1,null],"a":"<ü>"}}]`},
	} {
		s.want(204, token, "POST", "/topics/orders", tt.event)
		redistest.Eventually(t, "a delivery", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(bodies) > i
		})
		if bodies[i] != tt.body {
			t.Errorf("got %s, want %s", bodies[i], tt.body)
		}
	}
	redistest.Eventually(t, "figures", func() bool {
		return fmt.Sprint(s.rows(token)["mail"]["events"]) == "map[dead:0 dropped:0 failed:0 oldest:<nil> queued:0 sent:3]"
	})
}

// Without Redis nothing is published, and the answer shows nothing of what is inside.
func TestRedisIsAway(t *testing.T) {
	server := redistest.Start(t)
	s := newSite(t, server.URL(), webhook.Options{})
	token := s.token("shop")
	s.want(204, token, "POST", "/topics/orders", anEvent)
	server.Kill()
	s.want(500, rootToken, "GET", "/pulse", "")
	for _, who := range []string{token, rootToken} { // one is remembered for a second, one needs no look
		s.want(500, who, "GET", "/pulse", "")
		resp, text := s.ask(who, "GET", "/topics", "")
		if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" || strings.Contains(text, "127.0.0.1") {
			t.Errorf("got %d %s", resp.StatusCode, text)
		}
	}
	s.want(503, token, "POST", "/topics/orders", anEvent)
	s.want(503, rootToken, "DELETE", "/subscriber?subscriber=mail", "")
	s.want(200, "", "GET", "/health/ping", "")
	if text := s.log.String(); strings.Contains(text, "level=ERROR") {
		t.Errorf("an outage is logged by request: %s", text)
	}
	server.Restart()
	redistest.Eventually(t, "the way back", func() bool { resp, _ := s.ask(rootToken, "GET", "/pulse", ""); return resp.StatusCode == 204 })
}
