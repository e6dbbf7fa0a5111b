package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
)

const oneEvent = `[{"topic":"orders","type":"update","url":"https://shop.example.com/orders/7","t":1767225600123}]`

// A got keeps the batches that a handler has handed on.
type got struct {
	batches []*Batch
	err     error // what the function returns
}

func (g *got) take(_ context.Context, b *Batch) error {
	g.batches = append(g.batches, b)
	return g.err
}

func posted(body string, set ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(set); i += 2 {
		r.Header.Set(set[i], set[i+1])
	}
	return r
}

func respond(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestReceiveHandsBatchesOn(t *testing.T) {
	at := time.UnixMilli(1767225600123).UTC()
	const url = "https://shop.example.com/orders/7"
	for _, tt := range []struct {
		name, body string
		want       []Event
	}{
		{"an array", oneEvent, []Event{{Topic: "orders", Type: "update", URL: url, T: at}}},
		{"in order, with data", ` [ {"topic":"a","type":"create","url":"u","t":0,"data":{"n":[1]}} , {"topic":"b","type":"noop","url":"v","t":-1,"data":null,"id":"later"}] ` + "\n", []Event{
			{Topic: "a", Type: "create", URL: "u", T: time.Unix(0, 0).UTC(), Data: json.RawMessage(`{"n":[1]}`)},
			{Topic: "b", Type: "noop", URL: "v", T: time.UnixMilli(-1).UTC()},
		}},
		{"a single object", oneEvent[1 : len(oneEvent)-1], []Event{{Topic: "orders", Type: "update", URL: url, T: at}}},
		{"one of Standard Webhooks", `{"type":"user.created","timestamp":"2026-01-01T01:00:00.123+01:00","data":"x"}`, []Event{{Type: "user.created", T: at, Data: json.RawMessage(`"x"`)}}},
	} {
		g := &got{}
		w := respond(Receive(ReceiveOptions{}, g.take), posted(tt.body, "Content-Type", "application/json; charset=utf-8", "Runnel-Batch", "msg_a", "Runnel-Attempt", "3", "Runnel-Epoch", "17"))
		want := []*Batch{{ID: "msg_a", Attempt: 3, Epoch: 17, Events: tt.want}}
		if w.Code != http.StatusNoContent || w.Body.Len() > 0 || !reflect.DeepEqual(g.batches, want) {
			t.Errorf("%s: got %d %s, %+v", tt.name, w.Code, w.Body, g.batches)
		}
	}
}

// answers checks what a handler answers, that only what is accepted is handed on, and that the text shows nothing of a request.
func answers(t *testing.T, name string, opts ReceiveOptions, r *http.Request, want int) {
	t.Helper()
	g := &got{}
	w := respond(Receive(opts, g.take), r)
	if w.Code != want || (len(g.batches) == 1) != (want == 204) {
		t.Errorf("%s: got %d %s and %d batches, want %d", name, w.Code, w.Body, len(g.batches), want)
	}
	if text := w.Body.String(); len(text) > 100 || strings.Contains(text, "U2VjcmV0") || strings.Contains(text, "d41d8cd9") || strings.Contains(text, "orders") {
		t.Errorf("%s: the answer says %s", name, text)
	}
	if (w.Header().Get("Allow") == "POST") != (w.Code == 405) || (w.Header().Get("WWW-Authenticate") != "") != (w.Code == 401) {
		t.Errorf("%s: answered %d with %v", name, w.Code, w.Header())
	}
}

func TestReceiveRefusesStrangers(t *testing.T) {
	const secret = "whsec_U2VjcmV0U2VjcmV0U2VjcmV0U2VjcmV0"
	keys, now := mustParse(t, secret), time.Now()
	right, hourAgo := sign(keys, "msg_a", secondsOf(now), []byte(oneEvent)), now.Add(-time.Hour)
	signed := func(body string, at time.Time, signature string) *http.Request {
		r := posted(body)
		for name, value := range signedHeader("msg_a", at, signature) {
			r.Header[name] = value
		}
		return r
	}
	as := func(user, password string) *http.Request {
		r := posted(oneEvent)
		r.SetBasicAuth(user, password)
		return r
	}
	secrets, uuid := ReceiveOptions{Secrets: []string{NewSecret(), secret}}, ReceiveOptions{UUID: "d41d8cd9"}
	for _, tt := range []struct {
		name string
		opts ReceiveOptions
		r    *http.Request
		want int
	}{
		{"signed", secrets, signed(oneEvent, now, right), 204},
		{"not signed", secrets, posted(oneEvent, "Runnel-Batch", "msg_a"), 403},
		{"another body", secrets, signed(oneEvent+" ", now, right), 403},
		{"old", secrets, signed(oneEvent, hourAgo, sign(keys, "msg_a", secondsOf(hourAgo), []byte(oneEvent))), 403},
		{"signed by another", secrets, signed(oneEvent, now, sign(mustParse(t, NewSecret()), "msg_a", secondsOf(now), []byte(oneEvent))), 403},
		{"the right user", uuid, as("d41d8cd9", "x"), 204},
		{"no user", uuid, posted(oneEvent), 401},
		{"another user", uuid, as("d41d8cd", "x"), 401},
		{"another password", uuid, as("d41d8cd9", ""), 401},
	} {
		answers(t, tt.name, tt.opts, tt.r, tt.want)
	}
}

func TestReceiveRefusesWhatIsNoBatch(t *testing.T) {
	request := func(method, kind string) *http.Request {
		r := posted(oneEvent, "Content-Type", kind)
		r.Method = method
		return r
	}
	answers(t, "a GET", ReceiveOptions{}, request(http.MethodGet, "application/json"), 405)
	answers(t, "a form", ReceiveOptions{}, request(http.MethodPost, "application/x-www-form-urlencoded"), 415)
	answers(t, "no content type", ReceiveOptions{}, request(http.MethodPost, ""), 415)
	answers(t, "as large as allowed", ReceiveOptions{MaxBody: int64(len(oneEvent))}, posted(oneEvent), 204)
	answers(t, "too large", ReceiveOptions{MaxBody: int64(len(oneEvent)) - 1}, posted(oneEvent), 413)
	answers(t, "too large by default", ReceiveOptions{}, posted("["+strings.Repeat(" ", 4<<20)), 413)
	many := strings.Repeat(`{"type":"a"},`, 9_999)
	for name, tt := range map[string]struct {
		body string
		want int
	}{
		"as many as allowed":          {"[" + many + `{"type":"a"}]`, 204},
		"too many":                    {"[" + many + `{"type":"a"},{"type":"a"}]`, 400},
		"nothing":                     {"", 400},
		"no events":                   {"[]", 400},
		"no type":                     {`[{"topic":"orders"}]`, 400},
		"null":                        {"null", 400},
		"an array of null":            {"[null]", 400},
		"a time with a fraction":      {`{"type":"a","t":1.5}`, 400},
		"cut off":                     {oneEvent[:len(oneEvent)-1], 400},
		"with something behind":       {oneEvent + "x", 400},
		"with another array behind":   {oneEvent + oneEvent, 400},
		"objects without an array":    {`{"type":"a"}{"type":"b"}`, 400},
		"an object that is an array":  {`{"type":"a"}]`, 400},
		"objects without commas":      {`[{"type":"a"}{"type":"b"}]`, 400},
		"an array in place of events": {`[["a"]]`, 400},
	} {
		answers(t, name, ReceiveOptions{}, posted(tt.body), tt.want)
	}
}

// The signed ID counts, and not one that anybody could have sent.
func TestReceiveTakesTheSignedID(t *testing.T) {
	secret, now, g := NewSecret(), time.Now(), &got{}
	r := posted(oneEvent, "Runnel-Batch", "msg_b")
	for name, value := range signedHeader("msg_a", now, sign(mustParse(t, secret), "msg_a", secondsOf(now), []byte(oneEvent))) {
		r.Header[name] = value
	}
	if w := respond(Receive(ReceiveOptions{Secrets: []string{secret}}, g.take), r); w.Code != 204 || g.batches[0].ID != "msg_a" {
		t.Errorf("got %d %s, %+v", w.Code, w.Body, g.batches)
	}
}

func TestReceiveAnswersErrors(t *testing.T) {
	bad := errors.New("database is away")
	for _, tt := range []struct {
		err        error
		want       int
		retryAfter string
	}{
		{bad, 500, ""},
		{runnel.RetryAfter(bad, 1500*time.Millisecond), 503, "2"},
		{fmt.Errorf("orders: %w", runnel.RetryAfter(bad, time.Minute)), 503, "60"},
		{runnel.RetryAfter(bad, 0), 503, "0"},
		{runnel.RetryAfter(bad, 1<<63-1), 503, "9223372037"},
		{runnel.DeadLetter(bad), 500, ""},
	} {
		g := &got{err: tt.err}
		w := respond(Receive(ReceiveOptions{}, g.take), posted(oneEvent))
		if w.Code != tt.want || w.Header().Get("Retry-After") != tt.retryAfter || !strings.Contains(w.Body.String(), bad.Error()) {
			t.Errorf("%v: got %d, Retry-After %q, %s", tt.err, w.Code, w.Header().Get("Retry-After"), w.Body)
		}
	}
}

func TestReceiveAsksWhatWasSeen(t *testing.T) {
	g := &got{}
	handled := map[string]bool{"msg_old": true}
	h := Receive(ReceiveOptions{Seen: func(_ context.Context, id string) (bool, error) {
		if id == "" {
			t.Error("asked for no ID")
		}
		if id == "msg_unknown" {
			return false, runnel.RetryAfter(errors.New("database is away"), time.Second)
		}
		return handled[id], nil
	}}, g.take)
	for _, tt := range []struct {
		id            string
		code, batches int
	}{{"msg_old", 204, 0}, {"msg_new", 204, 1}, {"msg_unknown", 503, 1}, {"", 204, 2}} {
		if w := respond(h, posted(oneEvent, "Runnel-Batch", tt.id)); w.Code != tt.code || len(g.batches) != tt.batches {
			t.Errorf("%q: got %d and %d batches, want %d and %d", tt.id, w.Code, len(g.batches), tt.code, tt.batches)
		}
	}
}

func TestReceivePanicsOnMistakes(t *testing.T) {
	fn := (&got{}).take
	for name, construct := range map[string]func(){
		"no function":      func() { Receive(ReceiveOptions{}, nil) },
		"no secret":        func() { Receive(ReceiveOptions{Secrets: []string{""}}, fn) },
		"a short secret":   func() { Receive(ReceiveOptions{Secrets: []string{NewSecret(), "whsec_c2hvcnQ="}}, fn) },
		"negative MaxBody": func() { Receive(ReceiveOptions{MaxBody: -1}, fn) },
		"a colon":          func() { Receive(ReceiveOptions{UUID: "a:x"}, fn) },
	} {
		func() {
			defer func() {
				if said := recover(); said == nil || strings.Contains(fmt.Sprint(said), "c2hvcnQ") {
					t.Errorf("%s: got %v", name, said)
				}
			}()
			construct()
		}()
	}
}

func TestDecodeOfAnEvent(t *testing.T) {
	v := struct{ N int }{7}
	if err := (Event{}).Decode(&v); err != nil || v.N != 7 {
		t.Errorf("no data: %v, %v", v, err)
	}
	if err := (Event{Data: json.RawMessage(`{"n":8}`)}).Decode(&v); err != nil || v.N != 8 {
		t.Errorf("data: %v, %v", v, err)
	}
	if err := (Event{Data: v}).Decode(&v); err == nil {
		t.Error("data to publish was decoded")
	}
}
