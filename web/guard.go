package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/runnel-go/runnel/internal/guesses"
)

// policy allows the page to load files of this server only.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Embedder-Policy", "require-corp")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
}

// toDirectory redirects to the requested path with a slash at its end: addresses within the page
// are relative to it. It uses the path that the browser requested, since a prefix may have been
// stripped.
func toDirectory(w http.ResponseWriter, r *http.Request) {
	asked, _, _ := strings.Cut(r.RequestURI, "?")
	w.Header().Set("Location", "./"+path.Base(asked)+"/")
	w.WriteHeader(http.StatusPermanentRedirect)
}

// isForeign reports whether the browser names a page of another origin as the sender. Such a page
// could not read the answer, but could make the server work. Without TLS browsers send
// Sec-Fetch-Site only on the loopback, and Origin only to other origins.
func isForeign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return false
	case "":
		origin := r.Header.Get("Origin")
		u, err := url.Parse(origin)
		return origin != "" && (err != nil || u.Host != r.Host)
	}
	return true
}

// actionHeader is a header that a page of another origin cannot send without a preflight request,
// which the dashboard does not allow.
const actionHeader = "X-Runnel-Dashboard"

var (
	errNoToken    = errors.New("actions need the token")
	errWrongToken = errors.New("this is not the token")
	errGuesses    = errors.New("too many wrong tokens: wait a minute")
	errForeign    = errors.New("the request came from another page")
)

// A guard decides which requests may act. It is safe for concurrent use.
type guard struct {
	hosts []string
	token [sha256.Size]byte
	cross http.CrossOriginProtection
	tries *guesses.Guard
}

func newGuard(o Options) *guard {
	return &guard{hosts: o.Hosts, token: sha256.Sum256([]byte(o.Token)), tries: guesses.New()}
}

// knows reports whether the dashboard is served under this name.
func (g *guard) knows(host string) bool {
	if len(g.hosts) == 0 {
		return true
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	return slices.ContainsFunc(g.hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// admit returns 0 if a request may act, or else a status code and the reason.
func (g *guard) admit(r *http.Request) (int, error) {
	if g.cross.Check(r) != nil || r.Header.Get(actionHeader) == "" {
		return http.StatusForbidden, errForeign
	}
	token := tokenOf(r)
	if token == "" {
		return http.StatusUnauthorized, errNoToken
	}
	sum := sha256.Sum256([]byte(token))
	right := subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1
	if !g.tries.Try(addressOf(r), right) {
		return http.StatusTooManyRequests, errGuesses
	}
	if !right {
		return http.StatusUnauthorized, errWrongToken
	}
	return 0, nil
}

// tokenHeader carries the token from the page: a proxy may use Authorization itself.
const tokenHeader = "X-Runnel-Token"

// tokenOf returns the token of a request: from the page's header, or a Bearer from scripts.
func tokenOf(r *http.Request) string {
	if token := r.Header.Get(tokenHeader); token != "" {
		return token
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return ""
	}
	return token
}

// addressOf returns the remote address; for IPv6 its network.
func addressOf(r *http.Request) string { return guesses.Address(r.RemoteAddr) }
