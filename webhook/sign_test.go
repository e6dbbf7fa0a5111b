package webhook

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// vectors were signed by github.com/standard-webhooks/standard-webhooks/libraries v0.0.1.
var vectors = []struct {
	secret, id      string
	at              int64
	body, signature string
}{
	{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, `{"test": 2432232314}`, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
	{"whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "msg_mfrggzdfmztwq2lknnwg23tpoa", 1767225600, `[{"topic":"orders","type":"update","url":"https://shop.example.com/orders/7","t":1767225600123}]`, "v1,toT3F2UjfBsFfkxr/Xw5wVgC6iLfg9GZVlQuB3xNQS4="},
	{"whsec_ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoOEhYaHiImKi4yNjo+QkZKTlJWWl5iZmpucnZ6foKGiow==", "msg_mfrggzdfmztwq2lknnwg23tpoa", 1767225600, `[{"topic":"orders","type":"update","url":"https://shop.example.com/orders/7","t":1767225600123}]`, "v1,AFgjx2K2yRjlPy9+ixdksq6zY4rQlcbijsCfDNiS6r4="},
	{"whsec_BwgJCgsMDQ4PEBESExQVFhcYGRobHB0e", "msg_a", 0, "é\x00\n", "v1,2BeAv8alM6gIBauDoZImyoaWrVQuWzEFbPv4jSwT67U="},
}

func mustParse(t testing.TB, secrets ...string) (keys [][]byte) {
	t.Helper()
	for _, secret := range secrets {
		key, err := parseSecret(secret)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	return keys
}

func secondsOf(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

func signedHeader(id string, at time.Time, signature string) http.Header {
	h := http.Header{}
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", secondsOf(at))
	h.Set("webhook-signature", signature)
	return h
}

func TestSignaturesAreThoseOfStandardWebhooks(t *testing.T) {
	for _, v := range vectors {
		at := time.Unix(v.at, 999)
		keys := mustParse(t, v.secret)
		if got := sign(keys, v.id, secondsOf(at), []byte(v.body)); got != v.signature {
			t.Errorf("%s: got %s, want %s", v.id, got, v.signature)
		}
		if err := verify(keys, signedHeader(v.id, at, v.signature), []byte(v.body), at); err != nil {
			t.Errorf("%s: %v", v.id, err)
		}
	}
}

func TestEitherSecretOfARotationVerifies(t *testing.T) {
	at, body := time.Unix(1767225600, 0), []byte("[]")
	keys := mustParse(t, NewSecret(), NewSecret(), NewSecret())
	h := signedHeader("msg_a", at, sign(keys[:2], "msg_a", secondsOf(at), body))
	if n := strings.Count(h.Get("webhook-signature"), " "); n != 1 {
		t.Errorf("got %q, want two signatures", h.Get("webhook-signature"))
	}
	for i, want := range []error{nil, nil, errSignature} {
		if err := verify(keys[i:i+1], h, body, at); err != want {
			t.Errorf("key %d: got %v, want %v", i, err, want)
		}
	}
	if err := verify([][]byte{keys[2], keys[1]}, h, body, at); err != nil {
		t.Errorf("the second of the receiver's keys: %v", err)
	}
}

func TestVerifyRefuses(t *testing.T) {
	at, body := time.Unix(1767225600, 0), []byte("[]")
	keys := mustParse(t, NewSecret())
	right := sign(keys, "msg_a", secondsOf(at), body)
	far := func(d time.Duration) http.Header {
		return signedHeader("msg_a", at.Add(d), sign(keys, "msg_a", secondsOf(at.Add(d)), body))
	}
	without := func(name string) http.Header {
		h := signedHeader("msg_a", at, right)
		h.Del(name)
		return h
	}
	with := func(name, value string) http.Header {
		h := signedHeader("msg_a", at, right)
		h.Set(name, value)
		return h
	}
	for _, tt := range []struct {
		name string
		h    http.Header
		want error
	}{
		{"right", signedHeader("msg_a", at, right), nil},
		{"5 minutes old", far(-5 * time.Minute), nil},
		{"5 minutes ahead", far(5 * time.Minute), nil},
		{"older", far(-5*time.Minute - time.Second), errTimestamp},
		{"further ahead", far(5*time.Minute + time.Second), errTimestamp},
		{"the end of time", with("webhook-timestamp", "9223372036854775807"), errTimestamp},
		{"before all time", with("webhook-timestamp", "-9223372036854775808"), errTimestamp},
		{"beyond numbers", with("webhook-timestamp", "9223372036854775808"), errTimestamp},
		{"no number", with("webhook-timestamp", "2026-01-01T00:00:00Z"), errTimestamp},
		{"the number written differently", with("webhook-timestamp", "+1767225600"), errSignature},
		{"no ID", without("webhook-id"), errUnsigned},
		{"no timestamp", without("webhook-timestamp"), errUnsigned},
		{"no signature", without("webhook-signature"), errUnsigned},
		{"another ID", with("webhook-id", "msg_b"), errSignature},
		{"another timestamp", with("webhook-timestamp", "1767225601"), errSignature},
		{"a shorter signature", with("webhook-signature", right[:len(right)-1]), errSignature},
		{"an empty signature", with("webhook-signature", "v1,"), errSignature},
		{"another version", with("webhook-signature", "v1a,"+strings.TrimPrefix(right, "v1,")), errSignature},
		{"among others", with("webhook-signature", "v1a,eA== v1,eA==  "+right), nil},
	} {
		if err := verify(keys, tt.h, body, at); err != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
	if err := verify(keys, signedHeader("msg_a", at, right), []byte("[] "), at); err != errSignature {
		t.Errorf("another body: got %v", err)
	}
}

func TestParseSecret(t *testing.T) {
	secret := NewSecret()
	if other := NewSecret(); other == secret {
		t.Errorf("%s twice", secret)
	}
	if key := mustParse(t, secret)[0]; len(key) != 32 {
		t.Errorf("%s has %d bytes", secret, len(key))
	}
	formatSecret := func(key []byte) string { return "whsec_" + base64.StdEncoding.EncodeToString(key) }
	for _, n := range []int{24, 64} {
		mustParse(t, formatSecret(make([]byte, n)))
	}
	const shown = "U2VjcmV0U2VjcmV0"
	for _, bad := range []string{
		"", shown, "whsec_", "WHSEC_" + shown + shown, "whsec_" + shown, formatSecret(make([]byte, 23)), formatSecret(make([]byte, 65)),
		"whsec_" + shown + shown + "!", "whsec_" + shown + shown + "A", "whsec_whsec_" + shown + shown,
	} {
		key, err := parseSecret(bad)
		if err == nil {
			t.Errorf("%q is accepted as %x", bad, key)
			continue
		}
		if strings.Contains(err.Error(), shown) || strings.Contains(err.Error(), "AAAA") {
			t.Errorf("%q: the error shows it: %v", bad, err)
		}
	}
}
