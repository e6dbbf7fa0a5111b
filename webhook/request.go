package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"code.dny.dev/ssrf"

	"github.com/runnel-go/runnel/internal/words"
)

const (
	idlePerHost = 32
	idleAll     = 256
	idleTimeout = 30 * time.Second

	maxAnswerHeader = 64 << 10
	maxAnswerBody   = 64 << 10
	maxRetryAfter   = time.Hour

	shownMost = 200     // characters of an answer that are kept
	shownFrom = 4 << 10 // bytes of it that are searched for them, and for secrets
)

// A sender posts batches to receivers. It is safe for concurrent use.
type sender struct {
	transport http.RoundTripper
	timeout   time.Duration
	agent     string
}

// newSender panics if certificates would not be verified.
func newSender(o *Options) *sender {
	s := &sender{transport: o.Transport, timeout: o.Timeout, agent: "runnel-webhook/" + strings.Trim(words.Version(), "()")}
	if s.transport == nil {
		s.transport = newTransport(o.TLS, &net.Dialer{Timeout: o.ConnectTimeout, Control: guard(o.AllowAddresses).Safe})
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

// An answer is how a delivery has ended.
type answer struct {
	status     int           // of HTTP, 0 without an answer
	err        string        // "": the receiver has it; else its host and what happened, without anything secret
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
	if a.status = resp.StatusCode; a.status/100 == 2 {
		return a
	}
	if a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable {
		a.retryAfter = retryAfter(resp.Header.Get("Retry-After"), time.Now())
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
		at := strconv.FormatInt(now.Unix(), 10)
		h.Set(headerID, d.id)
		h.Set(headerTimestamp, at)
		h.Set(headerSignature, sign(d.keys, d.id, at, d.body))
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

// retryAfter returns how long an answer asks to wait: for seconds, or until a date. 0: it does not say so.
func retryAfter(text string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(n, uint64(maxRetryAfter/time.Second))) * time.Second
	}
	at, _ := http.ParseTime(text) // long ago without one
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

// trouble says why there was no answer, where limited is ctx with the timeout. It repeats nothing of the request: an
// error of net/http may quote what a receiver has sent, and so what the receiver was sent.
func (s *sender) trouble(ctx, limited context.Context, err error) string {
	var lookup *net.DNSError
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" {
		err = op.Err // an alert of TLS
	}
	switch problem, ofTLS := strings.CutPrefix(err.Error(), "tls: "); {
	case ctx.Err() != nil:
		return "interrupted by the sender"
	case limited.Err() != nil:
		return fmt.Sprintf("no answer within %s", s.timeout)
	case op != nil && errors.Is(err, ssrf.ErrProhibitedIP):
		return op.Err.Error()
	case errors.As(err, &lookup):
		return "the name could not be looked up"
	case ofTLS:
		return "TLS: " + shown(problem, nil)
	case op != nil && op.Op == "dial":
		return "no connection"
	}
	return "no valid answer"
}

// redact returns what can be shown of an answer: without what the receiver was sent in confidence.
func redact(answer []byte, req *http.Request, d *attempt) string {
	path, escaped := strings.Trim(req.URL.Path, "/"), strings.Trim(req.URL.EscapedPath(), "/")
	hidden := append(strings.Split(path+"/"+escaped, "/"), path, escaped)
	hidden = slices.DeleteFunc(hidden, func(part string) bool { return len(part) < 4 }) // not every "a"
	if d.uuid != "" {
		hidden = append(hidden, strings.TrimPrefix(req.Header.Get("Authorization"), "Basic "), d.uuid)
	}
	for _, key := range d.keys {
		hidden = append(hidden, base64.StdEncoding.EncodeToString(key))
	}
	for _, signature := range strings.Fields(req.Header.Get(headerSignature)) {
		hidden = append(hidden, strings.TrimPrefix(signature, signatureV1))
	}
	return shown(string(answer), hidden)
}

// shown returns the first printable characters of a text, with single spaces between its words, and without what is hidden.
func shown(text string, hidden []string) string {
	text = strings.Map(func(c rune) rune {
		if c == unicode.ReplacementChar || !unicode.IsPrint(c) && !unicode.IsSpace(c) {
			return -1
		}
		return c
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	slices.SortFunc(hidden, func(a, b string) int { return len(b) - len(a) }) // or a part of one would remain
	for _, part := range hidden {
		text = strings.ReplaceAll(text, part, "…")
	}
	runes := []rune(text)
	return string(runes[:min(len(runes), shownMost)])
}
