package webhook_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/webhook"
)

// What is wrong with a subscription is said, and nothing is stored.
func TestBadSubscriptions(t *testing.T) {
	s := newSite(t, "", webhook.Options{})
	token := s.token("mail")
	for field, says := range map[string]string{
		`"topics":[]`: "0 topics", `"topics":"orders"`: "field topics: ", `"topics":["A"]`: "lower-case", `"topics":null`: "0 topics",
		`"callback":"http://x.example"`: "http://", `"callback":"https://x.example/?a"`: "query", `"callback":"https://10.0.0.1/"`: "not a permitted", `"callback":null`: "https://",
		`"max":0`: "field max: not a whole number from 1 to 10000", `"max":10001`: "max", `"max":"10"`: "field max", `"timeout":-1`: "timeout: not a whole number from 0 to 86400000", `"timeout":86400001`: "timeout", `"timeout":1.5`: "timeout",
		`"uuid":"a:b"`: "uuid", `"uuid":1`: "field uuid: ", `"format":"array+id"`: "format", `"secret":"short"`: "secret", `"secret":false`: "neither true nor a text", `"secret":""`: "secret",
		`"in_flight":2`: "unknown field", `"from":"0-0"`: "unknown field", `"retention":1`: "unknown field", `"order":"url"`: "unknown field", `"max_attempts":1`: "unknown field",
	} {
		body := `{"topics":["orders"],"callback":"https://mail.example/hook",` + field + `}`
		if text := s.want(400, token, "POST", "/subscription", body); !strings.Contains(text, says) {
			t.Errorf("%s: got %s, want %s", field, text, says)
		}
	}
	if rows := s.rows(rootToken); len(rows) != 0 {
		t.Errorf("got %v", rows)
	}
}

// A subscription is what the last request says. Others see no path of its callback, and nobody sees its UUID.
func TestSubscriptions(t *testing.T) {
	s := newSite(t, "", webhook.Options{})
	mail, shop, read := s.token("mail"), s.token("shop"), s.token("grafana", webhook.RoleRead)
	body := `{"topics":["orders","carts"],"callback":"https://mail.example/T0K3N","uuid":"d41d8cd9","timeout":0,"max":7,"format":"array","secret":null}`
	for range 2 {
		s.want(204, mail, "POST", "/subscription", body)
	}
	s.want(204, shop, "POST", "/topics/orders", `[`+anEvent+`,`+anEvent+`]`)
	s.want(204, mail, "POST", "/subscriber", body)
	rows := s.rows(mail)
	row := rows["mail"]
	oldest, _ := row["events"].(map[string]any)["oldest"].(float64)
	if now := float64(time.Now().Unix()); oldest < now-60 || oldest > now {
		t.Errorf("oldest is %v at %v", oldest, now)
	}
	delete(row["events"].(map[string]any), "oldest")
	if got := fmt.Sprint(row); got != "map[callback:https://mail.example/T0K3N error:<nil> events:map[dead:0 dropped:0 failed:0 queued:2 sent:0] max_events:7 next_attempt:<nil> state:ok subscriber:mail timeout:0 topics:[carts orders] uuid:<nil>]" {
		t.Errorf("got %s", got)
	}
	for token, callback := range map[string]string{shop: "https://mail.example", read: "https://mail.example/T0K3N", rootToken: "https://mail.example/T0K3N"} {
		if got := s.rows(token)["mail"]["callback"]; got != callback {
			t.Errorf("got callback %s, want %s", got, callback)
		}
	}

	s.want(404, mail, "DELETE", "/subscriber/topics/users", "")
	s.want(204, mail, "DELETE", "/subscriber/topics/orders", "")
	s.want(404, mail, "DELETE", "/subscriber/topics/orders", "")
	s.want(204, shop, "POST", "/topics/orders", anEvent)
	row = s.rows(mail)["mail"]
	if got := fmt.Sprint(row["topics"], row["events"].(map[string]any)["queued"]); got != "[carts] 2" { // those before
		t.Errorf("got %s", got)
	}
	s.want(204, mail, "DELETE", "/subscriber", "")
	s.want(404, mail, "DELETE", "/subscriber", "")
	s.want(404, mail, "POST", "/subscribers/mail/pause", "")
	if rows := s.rows(read); len(rows) != 0 {
		t.Errorf("got %v", rows)
	}
}

func TestPauseResumeAndSecrets(t *testing.T) {
	s := newSite(t, "", webhook.Options{})
	mail := s.token("mail")
	var made struct{ Secret string }
	s.must(json.Unmarshal([]byte(s.want(200, mail, "POST", "/subscription", strings.Replace(subscription("orders"), "{", `{"secret":true,`, 1))), &made))
	if key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(made.Secret, "whsec_")); err != nil || len(key) != 32 {
		t.Errorf("got %s", made.Secret)
	}
	s.must(json.Unmarshal([]byte(s.want(200, mail, "PUT", "/subscribers/mail/secret", `{"secret":true}`)), &made))
	s.want(204, mail, "PUT", "/subscribers/mail/secret", `{"secret":"`+made.Secret+`"}`)
	for _, body := range []string{``, `{}`, `{"secret":"x"}`, `{"secret":1}`, `{"secret":true,"x":1}`} {
		s.want(400, mail, "PUT", "/subscribers/mail/secret", body)
	}

	for _, body := range []string{`{"for":1}`, `{"why":"x"}`, `[]`} {
		s.want(400, mail, "POST", "/subscribers/mail/pause", body)
	}
	s.want(204, mail, "POST", "/subscribers/mail/pause", "{}")
	var paused webhook.Subscriber
	for one, err := range s.bus.Subscribers(t.Context()) {
		s.must(err)
		paused = one
	}
	if paused.State != "paused" || paused.PausedBy != "mail" || time.Since(paused.Since) > time.Minute || paused.UUID != "" || paused.Secret != "" || s.rows(mail)["mail"]["state"] != "paused" {
		t.Errorf("got %+v", paused)
	}
	s.want(400, mail, "POST", "/subscribers/mail/resume", `{"why":"x"}`)
	s.want(204, mail, "POST", "/subscribers/mail/resume", "{}")
	if row := s.rows(mail)["mail"]; row["state"] != "ok" {
		t.Errorf("got %v", row)
	}
}

// All subscribers are listed, however many there are, and one that is not readable is no reason to hide the others.
func TestManySubscribers(t *testing.T) {
	s := newSite(t, "", webhook.Options{Partitions: 1})
	for i := range 600 {
		s.must(s.bus.Subscribe(t.Context(), webhook.Subscription{Client: fmt.Sprint("mail", i), Callback: "https://mail.example/", Topics: []string{"orders"}}))
	}
	c := redis.NewClient(&redis.Options{Addr: strings.TrimPrefix(s.redis, "redis://")})
	t.Cleanup(func() { c.Close() })
	keys, err := c.Keys(t.Context(), "*whconf*").Result()
	s.must(err)
	s.must(c.HSet(t.Context(), keys[0], "mail7", `{"v":2}`).Err())
	rows := s.rows(rootToken)
	if len(rows) != 600 || rows["mail7"]["state"] != "unreadable" || rows["mail8"]["state"] != "ok" {
		t.Errorf("%d rows, %v", len(rows), rows["mail7"])
	}
}

// What fails is seen while it does.
func TestStates(t *testing.T) {
	inRig(t, &webhook.Options{DisableAfter: time.Hour}, func(r *rig) {
		look := func() (s webhook.Subscriber) {
			for one, err := range r.bus.Subscribers(r.c.Context()) {
				r.must(err)
				s = one
			}
			return s
		}
		r.start("w0")
		r.subscribe("mail", 10, -1, "orders")
		if s := look(); s.State != "ok" || s.Timeout >= 0 || s.Callback != "https://mail.example/hook" || s.Max != 10 {
			t.Errorf("got %+v", s)
		}
		r.answer("mail.example", func(*request) int { return 500 })
		r.publish("orders", 0, 3)
		began := time.Now()
		time.Sleep(time.Minute)
		if s := look(); s.State != "waiting" || s.Queued != 3 || s.Failed < 3 || !strings.Contains(s.LastError, "mail.example: answered 500") ||
			!s.NextAttempt.After(time.Now()) || s.Since.Sub(began).Abs() > 5*time.Second || s.Oldest.Sub(began).Abs() > 5*time.Second {
			t.Errorf("got %+v", s)
		}
		time.Sleep(2 * time.Hour)
		if s := look(); s.State != "disabled" || s.LastError == "" || s.Queued != 3 {
			t.Errorf("got %+v", s)
		}
		r.answer("mail.example", func(*request) int { return 204 })
		r.must(r.bus.Resume(r.c.Context(), "mail"))
		time.Sleep(time.Minute)
		if s := look(); s.State != "ok" || s.Sent != 3 || s.Queued != 0 || s.LastError != "" || !s.Since.IsZero() {
			t.Errorf("got %+v", s)
		}
	})
}

// Many batches make a slow pulse, unless nobody could send them.
func TestScaling(t *testing.T) {
	inRig(t, &webhook.Options{RootToken: rootToken}, func(r *rig) {
		took := func() time.Duration {
			q, w, began := httptest.NewRequest("GET", "/pulse/scaling", nil), httptest.NewRecorder(), time.Now()
			q.RemoteAddr = "127.0.0.1:1"
			q.SetBasicAuth(rootToken, "")
			if r.bus.ServeHTTP(w, q); w.Code != 204 {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
			return time.Since(began)
		}
		r.subscribe("mail", 2, time.Hour, "orders")
		r.publish("orders", 0, 199)
		if d := took(); d >= time.Second {
			t.Errorf("answered after %v, and the last batch is not due", d)
		}
		r.publish("orders", 199, 1)
		if d := took(); d < time.Second || d > 2*time.Second {
			t.Errorf("answered after %v", d)
		}
		r.must(r.bus.Pause(r.c.Context(), "mail", nil))
		if d := took(); d >= time.Second {
			t.Errorf("answered after %v, and it is paused", d)
		}
	})
}

// Neither Redis nor the log has a token, a UUID or a secret.
func TestNothingSecretIsStoredOrLogged(t *testing.T) {
	server := redistest.Start(t)
	s := newSite(t, server.URL(), webhook.Options{SealKeys: [][]byte{[]byte(strings.Repeat("k", 32))}})
	s.run()
	const uuid, own = "u-u-i-d-4711-0815", "own-token-4711-0815-abc"
	mail, secret := s.token("mail"), webhook.NewSecret()
	body := strings.Replace(subscription("orders"), "{", `{"uuid":"`+uuid+`","secret":"`+secret+`",`, 1)
	s.want(204, mail, "POST", "/subscription", body)
	s.want(201, rootToken, "POST", "/api_tokens", `{"name":"old","token":"`+own+`"}`)
	s.want(204, own, "POST", "/topics/orders", `{"type":"update","url":"https://x/1","data":"D4T4"}`)
	s.want(204, rootToken, "PUT", "/subscribers/mail/secret", `{"secret":"`+webhook.NewSecret()+`"}`)
	s.want(400, own, "POST", "/subscription", strings.Replace(body, "https", "ftp", 1))
	s.want(401, secret, "GET", "/topics", "")
	s.want(204, rootToken, "DELETE", "/api_tokens/"+own, "")
	redistest.Eventually(t, "an attempt", func() bool { return fmt.Sprint(s.rows(mail)["mail"]["events"].(map[string]any)["failed"]) != "0" })

	hidden := []string{mail, own, rootToken, uuid, strings.TrimPrefix(secret, "whsec_")}
	dumped := dump(t, server)
	for _, text := range hidden {
		if strings.Contains(dumped, text) {
			t.Errorf("Redis has %s", text)
		}
	}
	for _, text := range append(hidden, "D4T4", "secret/path") {
		if strings.Contains(s.log.String(), text) {
			t.Errorf("the log has %s:\n%s", text, s.log)
		}
	}
	if !strings.Contains(dumped, "mail.example") || !strings.Contains(dumped, "s1:") {
		t.Error("this is no dump")
	}
}

// dump returns all keys with their values.
func dump(t *testing.T, server *redistest.Server) string {
	t.Helper()
	c, out := server.Client(t), &strings.Builder{}
	keys, err := c.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		var v any
		switch c.Type(t.Context(), key).Val() {
		case "string":
			v, err = c.Get(t.Context(), key).Result()
		case "hash":
			v, err = c.HGetAll(t.Context(), key).Result()
		case "stream":
			v, err = c.XRange(t.Context(), key, "-", "+").Result()
		case "zset":
			v, err = c.ZRangeWithScores(t.Context(), key, 0, -1).Result()
		case "set":
			v, err = c.SMembers(t.Context(), key).Result()
		case "list":
			v, err = c.LRange(t.Context(), key, 0, -1).Result()
		default:
			continue // it has expired
		}
		if err != nil && err != redis.Nil { //nolint:errorlint // as it comes
			t.Fatal(err)
		}
		fmt.Fprintln(out, key, v)
	}
	return out.String()
}

// Requests of many at once: each is done, and each sees what is there.
func TestConcurrently(t *testing.T) {
	s := newSite(t, "", webhook.Options{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			client := fmt.Sprint("client", i)
			token := s.token(client)
			topic := "topic_" + string(rune('a'+i))
			for range 5 {
				s.want(204, token, "POST", "/topics/"+topic, anEvent)
				s.want(204, token, "POST", "/subscription", subscription("topic_a"))
				s.want(200, token, "GET", "/subscribers", "")
				s.want(204, token, "POST", "/subscribers/"+client+"/pause", "")
			}
			s.want(204, rootToken, "DELETE", "/api_tokens/"+token, "")
			s.want(401, token, "GET", "/topics", "")
		})
	}
	wg.Wait()
	if rows := s.rows(rootToken); len(rows) != 8 {
		t.Errorf("%d subscribers", len(rows))
	}
}
