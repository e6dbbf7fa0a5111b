package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestADeliveryHasTheHeadersOfADelivery(t *testing.T) {
	var got *http.Request
	var body []byte
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
	})
	s := senderOf(t, Options{AllowAddresses: loopback, Timeout: long})
	s.agent = "runnel-webhook/1.2.3"
	d := deliveryTo(t, url)
	before := time.Now().Unix()
	a := s.post(t.Context(), d)
	wants(t, a, 200, "")
	if a.took <= 0 {
		t.Errorf("it took %v", a.took)
	}
	if got.Method != "POST" || got.RequestURI != "/hooks/T0K3N" || got.ProtoMinor != 1 || string(body) != oneEvent || got.ContentLength != int64(len(oneEvent)) {
		t.Errorf("got %+v with %s", got, body)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "runnel-webhook/1.2.3", "Runnel-Batch": "msg_mail_7", "Runnel-Attempt": "2", "Runnel-Epoch": "9",
		"webhook-id": "msg_mail_7", "Authorization": "Basic ZDQxZDhjZDk4ZjAwOng=", "Accept-Encoding": "",
	} {
		if got.Header.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.Header.Get(name), want)
		}
	}
	if err := verify(d.keys, got.Header, body, time.Now()); err != nil || got.Header.Get("webhook-timestamp") < fmt.Sprint(before) {
		t.Errorf("%v: %v", err, got.Header)
	}
	d.uuid, d.keys = "", nil
	wants(t, s.post(t.Context(), d), 200, "")
	for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature", "Authorization"} {
		if got.Header.Get(name) != "" {
			t.Errorf("without secrets %s is %q", name, got.Header.Get(name))
		}
	}
}

// What is sent is what Receive accepts.
func TestReceiveAcceptsADelivery(t *testing.T) {
	secret, g := NewSecret(), &got{}
	url := serve(t, Receive(ReceiveOptions{Secrets: []string{secret}, UUID: "d41d8cd98f00"}, g.take).ServeHTTP)
	s := senderOf(t, Options{AllowAddresses: loopback, Timeout: long})
	d := deliveryTo(t, url)
	wants(t, s.post(t.Context(), d), 403, "answered 403: no signature is right")
	d.keys = append(d.keys, mustParse(t, secret)...)
	wants(t, s.post(t.Context(), d), 204, "")
	if b := g.batches; len(b) != 1 || b[0].ID != d.id || b[0].Attempt != 2 || b[0].Epoch != 9 || len(b[0].Events) != 1 {
		t.Errorf("got %+v", b)
	}
}

func TestAnswers(t *testing.T) {
	for _, status := range []int{200, 202, 204, 299, 410, 413, 301, 302, 304, 307, 400, 401, 404, 429, 500, 503, 599, 700} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/again")
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
		})
		a := senderOf(t, Options{AllowAddresses: loopback, Timeout: long}).post(t.Context(), deliveryTo(t, url))
		text := fmt.Sprintf("%s: answered %d", strings.TrimPrefix(url, "http://"), status)
		if status < 300 {
			text = ""
		}
		wants(t, a, status, text)
		if asked := status == 429 || status == 503; (a.retryAfter == 7*time.Second) != asked || !asked && a.retryAfter != 0 {
			t.Errorf("%d: to come again after %v", status, a.retryAfter)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		text string
		want time.Duration
	}{
		{"", 0}, {"0", 0}, {"1", time.Second}, {"120", 2 * time.Minute}, {"3600", time.Hour}, {"3601", time.Hour},
		{"315360000", time.Hour}, {"99999999999999999999999", time.Hour},
		{"-1", 0}, {"+5", 0}, {"1.5", 0}, {"soon", 0}, {"5 minutes", 0}, {"0x10", 0},
		{"Thu, 01 Jan 2026 12:00:30 GMT", 30 * time.Second},
		{"Thursday, 01-Jan-26 12:00:30 GMT", 30 * time.Second},
		{"Thu Jan  1 12:00:30 2026", 30 * time.Second},
		{"Thu, 01 Jan 2026 11:59:30 GMT", 0},
		{"Thu, 01 Jan 2036 12:00:00 GMT", time.Hour},
		{"Thu, 01 Jan 9999 12:00:30 GMT", time.Hour},
	} {
		if got := retryAfter(tt.text, now); got != tt.want {
			t.Errorf("%q: got %v, want %v", tt.text, got, tt.want)
		}
	}
}

// A roundTrip answers without a network.
type roundTrip func(r *http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTroubleIsSaidInWords(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	read := func(err error) error { return &net.OpError{Op: "read", Net: "tcp", Err: err} }
	for _, tt := range []struct {
		err  error
		want string
	}{
		{dial(&net.DNSError{Err: "no such host", Name: "hooks.example.com", IsNotFound: true}), "the name could not be looked up"},
		{dial(&net.DNSError{Err: "server misbehaving", Server: "10.0.0.2:53"}), "the name could not be looked up"},
		{dial(&net.DNSError{Err: "i/o timeout", IsTimeout: true}), "the name could not be looked up"},
		{dial(context.DeadlineExceeded), "no connection"},
		{dial(syscall.ECONNREFUSED), "no connection"},
		{read(syscall.ECONNRESET), "no valid answer"},
		{fmt.Errorf("wrapped: %w", io.EOF), "no valid answer"},
		{io.ErrUnexpectedEOF, "no valid answer"},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: handshake failure")}, "TLS: handshake failure"},
		{errors.New("tls: server selected unsupported protocol version 301"), "TLS: server selected unsupported protocol version 301"},
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, "TLS: first record does not look like a TLS handshake"},
		{errors.New(`malformed HTTP response "T0K3N d41d8cd98f00"`), "no valid answer"},
	} {
		s := senderOf(t, Options{Transport: roundTrip(func(*http.Request) (*http.Response, error) { return nil, tt.err })})
		wants(t, s.post(t.Context(), deliveryTo(t, "https://hooks.example.com:8443")), 0, "hooks.example.com:8443: "+tt.want)
	}
	wants(t, senderOf(t, Options{}).post(t.Context(), deliveryTo(t, "https://a b")), 0, "the callback is no URL")
}

func TestTheEndOfTheContextEndsAnExchange(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	url := serveRaw(t, func(c net.Conn) {
		cancel()
		io.Copy(io.Discard, c)
	})
	wants(t, senderOf(t, Options{AllowAddresses: loopback, Timeout: long}).post(ctx, deliveryTo(t, url)), 0, "interrupted by the sender")
}

// A receiver that repeats what it was sent, as pages for debugging do, does not bring it into an error.
func TestAnAnswerIsShownWithoutWhatIsConfidential(t *testing.T) {
	key := "U2VjcmV0U2VjcmV0U2VjcmV0U2VjcmV0"
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(500)
		fmt.Fprintf(w, "cannot\r\n\tPOST %s\x00\u202e by \xff%s %s, secret whsec_%s, %s", r.URL.Path, r.Header.Get("Authorization")[6:], "d41d8cd98f00", key, r.Header.Get("webhook-signature")[3:])
	})
	a := senderOf(t, Options{AllowAddresses: loopback, Timeout: long}).post(t.Context(), deliveryTo(t, url))
	wants(t, a, 500, "answered 500: cannot POST /… by … …, secret whsec_…, …")
}

func TestAnAnswerIsShownInPart(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("ä", 300):            strings.Repeat("ä", 200),
		"  \n a \t\r\n b\x1b[31m\x7f\u200b": "a b[31m",
		"\x00\xff\xfe":                      "",
	} {
		if got := shown(text, nil); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestTransportsWithoutVerificationAreRefused(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("accepted")
		}
	}()
	senderOf(t, Options{TLS: &tls.Config{InsecureSkipVerify: true}})
}
