package webhook

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"unicode"
)

const (
	shownMost = 200     // characters of an answer that are kept
	shownFrom = 4 << 10 // bytes of it that are searched for them, and for secrets
)

// trouble says why there was no answer, where limited is ctx with the timeout. It repeats nothing of the request: an
// error of net/http may quote what a receiver has sent, and so what the receiver was sent.
func (s *sender) trouble(ctx, limited context.Context, err error) string {
	var address *addressError
	var lookup *net.DNSError
	var op *net.OpError
	var errno syscall.Errno
	if errors.As(err, &op) && op.Op == "remote error" {
		err = op.Err // an alert of TLS
	}
	switch problem, ofTLS := strings.CutPrefix(err.Error(), "tls: "); {
	case ctx.Err() != nil:
		return "interrupted by the sender"
	case limited.Err() != nil:
		return fmt.Sprintf("no answer within %s", s.timeout)
	case errors.As(err, &address):
		return address.Error()
	case errors.As(err, &lookup):
		return "the name could not be looked up"
	case op != nil && op.Op == "dial" && op.Timeout():
		return fmt.Sprintf("no connection within %s", s.connect)
	case ofTLS:
		return "TLS: " + shown(problem, nil)
	case errors.As(err, &errno):
		return errno.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed without an answer"
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
