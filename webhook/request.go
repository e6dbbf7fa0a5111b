package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

const (
	idlePerHost = 32
	idleAll     = 256
	idleTimeout = 30 * time.Second

	maxAnswerHeader = 64 << 10
	maxAnswerBody   = 64 << 10
	maxRetryAfter   = time.Hour
)

// A sender posts batches to receivers. It is safe for concurrent use.
type sender struct {
	transport        http.RoundTripper
	connect, timeout time.Duration
	agent            string
}

// newSender panics if certificates would not be verified.
func newSender(o *Options) *sender {
	s := &sender{transport: o.Transport, connect: o.ConnectTimeout, timeout: o.Timeout, agent: "runnel-webhook/" + cmp.Or(version(), "devel")}
	if s.transport == nil {
		s.transport = newTransport(o.TLS, &net.Dialer{Timeout: s.connect, ControlContext: guardDial(o.AllowAddresses)})
	}
	return s
}

func newTransport(config *tls.Config, dialer *net.Dialer) *http.Transport {
	secure := config.Clone()
	if secure == nil {
		secure = &tls.Config{}
	}
	if secure.InsecureSkipVerify {
		panic("webhook: TLS: InsecureSkipVerify: certificates are always verified")
	}
	secure.MinVersion, secure.NextProtos = max(secure.MinVersion, tls.VersionTLS12), nil
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy: nil, DialContext: dialer.DialContext, TLSClientConfig: secure, Protocols: protocols,
		MaxIdleConns: idleAll, MaxIdleConnsPerHost: idlePerHost, IdleConnTimeout: idleTimeout,
		MaxResponseHeaderBytes: maxAnswerHeader, DisableCompression: true,
	}
}

// An attempt is one try to hand a batch to its receiver.
type attempt struct {
	callback string // as checkCallback allows it
	body     []byte // must not change any more, even after the answer
	id       string // of the batch
	attempt  int
	epoch    int64
	uuid     string   // "": no credentials
	keys     [][]byte // of the secrets it is signed with
}

// An outcome is what an answer means for a batch.
type outcome int

const (
	failed   outcome = iota // another attempt
	settled                 // the receiver has it
	gone                    // 410: the receiver wants nothing more
	tooLarge                // 413: perhaps fewer events
)

// An answer is how a delivery has ended.
type answer struct {
	outcome    outcome
	status     int           // of HTTP, 0 without an answer
	err        string        // unless it is settled: the host and what happened, without anything secret
	retryAfter time.Duration // what a 429 or 503 asks for, at most 1 h; 0: nothing
	took       time.Duration
}

// post makes one exchange, which ends with ctx or after the timeout. It never sends a batch twice and follows no
// redirect. An answer of 2xx is settled even if its body is cut off, too long or too slow.
func (s *sender) post(ctx context.Context, d *attempt) (a answer) {
	began := time.Now()
	defer func() { a.took = time.Since(began) }()
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	req, err := s.request(limited, d, began)
	if err != nil {
		return answer{err: "the callback is no URL"} // err repeats it
	}
	resp, err := s.transport.RoundTrip(req) // not a Client: it would follow redirects
	if err != nil {
		return answer{err: req.URL.Host + ": " + s.trouble(ctx, limited, err)}
	}
	text := readAnswer(resp)
	switch a.status = resp.StatusCode; {
	case a.status/100 == 2:
		return answer{status: a.status, outcome: settled}
	case a.status == http.StatusGone:
		a.outcome = gone
	case a.status == http.StatusRequestEntityTooLarge:
		a.outcome = tooLarge
	case a.status == http.StatusTooManyRequests, a.status == http.StatusServiceUnavailable:
		a.retryAfter = retryAfter(resp.Header, time.Now())
	}
	a.err = fmt.Sprintf("%s: answered %d", req.URL.Host, a.status)
	if text := redact(text, req, d); text != "" {
		a.err += ": " + text
	}
	return a
}

func (s *sender) request(ctx context.Context, d *attempt, now time.Time) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.callback, bytes.NewReader(d.body))
	if err != nil {
		return nil, err
	}
	h := req.Header
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", s.agent)
	h.Set(headerBatch, d.id)
	h.Set(headerAttempt, strconv.Itoa(d.attempt))
	h.Set(headerEpoch, strconv.FormatInt(d.epoch, 10))
	if d.uuid != "" {
		req.SetBasicAuth(d.uuid, basicPassword)
	}
	if len(d.keys) > 0 {
		h.Set(headerID, d.id)
		h.Set(headerTimestamp, strconv.FormatInt(now.Unix(), 10))
		h.Set(headerSignature, sign(d.keys, d.id, now, d.body))
	}
	return req, nil
}

// readAnswer returns the beginning of an answer's body, and leaves the connection for another request if the body is
// short.
func readAnswer(resp *http.Response) []byte {
	defer resp.Body.Close()
	if resp.StatusCode < http.StatusOK {
		return nil // switching protocols: no deadline would end reads
	}
	head, err := io.ReadAll(io.LimitReader(resp.Body, shownFrom))
	if err == nil {
		_, _ = io.CopyN(io.Discard, resp.Body, maxAnswerBody-shownFrom)
	}
	return head
}

// retryAfter returns how long an answer asks to wait, 0 if it does not say so.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if n, err := strconv.ParseUint(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(n, uint64(maxRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if sent, err := http.ParseTime(h.Get("Date")); err == nil {
		now = sent // so that it does not matter whether the clocks agree
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
