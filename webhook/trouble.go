package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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
	dialing := errors.As(err, &op) && op.Op == "dial"
	switch isTLS, text := tlsTrouble(err); {
	case ctx.Err() != nil:
		return "interrupted by the sender"
	case limited.Err() != nil:
		return fmt.Sprintf("no answer within %s", s.timeout)
	case errors.As(err, &address):
		return address.Error()
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return "the name does not resolve"
	case lookup != nil:
		return "the name could not be looked up"
	case dialing && op.Timeout():
		return fmt.Sprintf("no connection within %s", s.connect)
	case isTLS:
		return "TLS: " + cut(oneLine(text))
	case errors.As(err, &errno):
		return errno.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), strings.Contains(err.Error(), "server closed idle connection"):
		return "connection closed without an answer"
	case strings.Contains(err.Error(), "response headers exceeded"):
		return fmt.Sprintf("answered with more than %d bytes of headers", maxAnswerHeader)
	}
	return "no valid answer"
}

// tlsTrouble returns what an error of crypto/tls says, beyond the name of its package.
func tlsTrouble(err error) (isTLS bool, text string) {
	var host x509.HostnameError
	var invalid *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var op *net.OpError
	switch {
	case errors.As(err, &host) && len(host.Certificate.DNSNames) > 0:
		return true, "certificate is for " + strings.Join(host.Certificate.DNSNames, ", ")
	case errors.As(err, &invalid):
		return true, strings.TrimPrefix(invalid.Err.Error(), "x509: ")
	case errors.As(err, &record):
		return true, "the receiver does not speak it"
	case errors.As(err, &op) && op.Op == "remote error":
		return true, strings.TrimPrefix(op.Err.Error(), "tls: ")
	}
	text, isTLS = strings.CutPrefix(err.Error(), "tls: ")
	return isTLS, text
}

// redact returns what can be shown of an answer: 200 printable characters, without what the receiver was sent in confidence.
func redact(answer []byte, req *http.Request, d *attempt) string {
	var parts []string
	for _, path := range []string{req.URL.Path, req.URL.EscapedPath()} {
		parts = append(parts, strings.Trim(path, "/"))
		parts = append(parts, strings.Split(path, "/")...)
	}
	parts = slices.DeleteFunc(parts, func(part string) bool { return len(part) < 4 }) // not every "a"
	if d.uuid != "" {
		parts = append(parts, strings.TrimPrefix(req.Header.Get("Authorization"), "Basic "), d.uuid)
	}
	for _, key := range d.keys {
		parts = append(parts, base64.StdEncoding.EncodeToString(key))
	}
	for _, signature := range strings.Fields(req.Header.Get(headerSignature)) {
		parts = append(parts, strings.TrimPrefix(signature, signatureV1))
	}
	slices.SortFunc(parts, func(a, b string) int { return len(b) - len(a) }) // or a part of one would remain
	text := oneLine(string(answer))
	for _, part := range parts {
		text = strings.ReplaceAll(text, part, "…")
	}
	return cut(text)
}

// oneLine returns the printable characters of a text, with single spaces between its words.
func oneLine(text string) string {
	text = strings.Map(func(c rune) rune {
		switch {
		case unicode.IsSpace(c):
			return ' '
		case c == unicode.ReplacementChar || !unicode.IsPrint(c):
			return -1
		}
		return c
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// cut returns the first characters of a text.
func cut(text string) string {
	if runes := []rune(text); len(runes) > shownMost {
		return string(runes[:shownMost])
	}
	return text
}
