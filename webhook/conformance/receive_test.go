package conformance

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/webhook"
	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// bodies are one of each format, and what the library's own tests sign.
var bodies = []string{
	`[{"topic":"orders","type":"update","url":"https://shop.example.com/orders/7","t":1767225600123},{"topic":"users","type":"create","url":"https://shop.example.com/users/ä","t":1767225600124,"data":{"n":1}}]`,
	`{"topic":"orders","type":"update","url":"https://shop.example.com/orders/7","t":1767225600123}`,
	`{"type": "example.created", "timestamp":"2023-09-28T19:20:22+00:00", "data":{"str":"string","bool":true,"int":42}}`,
}

// signed is a request that the library has signed.
func signed(t *testing.T, secret, id, body string, at time.Time) *http.Request {
	t.Helper()
	w, err := standard.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := w.Sign(id, at, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(standard.HeaderWebhookID, id)
	r.Header.Set(standard.HeaderWebhookTimestamp, fmt.Sprint(at.Unix()))
	r.Header.Set(standard.HeaderWebhookSignature, signature)
	return r
}

// receive returns the status of an answer, and the ID of the batch that was handed on, "" for none.
func receive(r *http.Request, secrets ...string) (status int, id string) {
	w := httptest.NewRecorder()
	webhook.Receive(webhook.ReceiveOptions{Secrets: secrets}, func(_ context.Context, b *webhook.Batch) error {
		id = b.ID
		return nil
	}).ServeHTTP(w, r)
	return w.Code, id
}

func TestWhatTheLibrarySignsIsReceived(t *testing.T) {
	of := func(n int) string { return "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, n)) }
	for _, secret := range []string{webhook.NewSecret(), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", of(24), of(64)} {
		for _, body := range bodies {
			r := signed(t, secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", body, time.Now())
			if status, id := receive(r, webhook.NewSecret(), secret); status != 204 || id != "msg_p5jXN8AQM9LWM0D4loKWxJek" {
				t.Errorf("%s: answered %d, batch %q", body, status, id)
			}
		}
	}
}

// Each of these the library refuses as well.
func TestWhatTheLibraryRefusesIsNotReceived(t *testing.T) {
	secret, body := webhook.NewSecret(), bodies[0]
	for name, tt := range map[string]struct {
		at     time.Duration
		tamper func(h http.Header)
		want   int
	}{
		"as signed":         {0, func(http.Header) {}, 204},
		"4 minutes old":     {-4 * time.Minute, func(http.Header) {}, 204},
		"4 minutes ahead":   {4 * time.Minute, func(http.Header) {}, 204},
		"6 minutes old":     {-6 * time.Minute, func(http.Header) {}, 403},
		"6 minutes ahead":   {6 * time.Minute, func(http.Header) {}, 403},
		"no ID":             {0, func(h http.Header) { h.Del("webhook-id") }, 403},
		"no timestamp":      {0, func(h http.Header) { h.Del("webhook-timestamp") }, 403},
		"no signature":      {0, func(h http.Header) { h.Del("webhook-signature") }, 403},
		"another ID":        {0, func(h http.Header) { h.Set("webhook-id", "msg_b") }, 403},
		"another timestamp": {0, func(h http.Header) { h.Set("webhook-timestamp", fmt.Sprint(time.Now().Unix()-9)) }, 403},
		"no number":         {0, func(h http.Header) { h.Set("webhook-timestamp", "now") }, 403},
		"another signature": {0, func(h http.Header) { h.Set("webhook-signature", "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc=") }, 403},
		"a part of one":     {0, func(h http.Header) { h.Set("webhook-signature", "v1,") }, 403},
		"another version":   {0, func(h http.Header) { h.Set("webhook-signature", "v2"+h.Get("webhook-signature")[2:]) }, 403},
		"the right among others": {0, func(h http.Header) {
			h.Set("webhook-signature", "v1,Ceo5qEr0 v2,eA== "+h.Get("webhook-signature")+" v1,eA==")
		}, 204},
	} {
		r := signed(t, secret, "msg_a", body, time.Now().Add(tt.at))
		tt.tamper(r.Header)
		w, err := standard.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Verify([]byte(body), r.Header); (err == nil) != (tt.want == 204) {
			t.Errorf("%s: the library says %v", name, err)
		}
		if status, id := receive(r, secret); status != tt.want || (id != "") != (tt.want == 204) {
			t.Errorf("%s: answered %d, batch %q", name, status, id)
		}
	}
	r := signed(t, secret, "msg_a", body, time.Now())
	r.Body = http.NoBody
	if status, id := receive(r, secret); status != 403 || id != "" {
		t.Errorf("another body: answered %d, batch %q", status, id)
	}
	if status, id := receive(signed(t, secret, "msg_a", body, time.Now()), webhook.NewSecret()); status != 403 || id != "" {
		t.Errorf("another secret: answered %d, batch %q", status, id)
	}
}
