package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
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

const (
	wrongTokens = 10 // allowed for an address in a wrongWindow
	wrongWindow = time.Minute
	guessers    = 1024 // addresses remembered
)

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
	now   func() time.Time

	mu      sync.Mutex
	guesses map[string]guess // by address
}

// A guess counts the wrong tokens from an address since its window began.
type guess struct {
	began time.Time
	wrong int
}

func newGuard(o Options) *guard {
	return &guard{hosts: o.Hosts, token: sha256.Sum256([]byte(o.Token)), now: time.Now, guesses: map[string]guess{}}
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
	from, sum := addressOf(r), sha256.Sum256([]byte(token))
	g.mu.Lock() // over check and count, or concurrent guesses would exceed the limit
	defer g.mu.Unlock()
	if !g.mayTry(from) {
		return http.StatusTooManyRequests, errGuesses
	}
	if subtle.ConstantTimeCompare(sum[:], g.token[:]) != 1 {
		g.noteWrong(from)
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

// mayTry and noteWrong must be called with mu held.
func (g *guard) mayTry(from string) bool {
	now := g.now()
	if was, is := g.guesses[from]; is {
		return was.wrong < wrongTokens || now.Sub(was.began) >= wrongWindow
	}
	if len(g.guesses) < guessers {
		return true
	}
	for address, was := range g.guesses {
		if now.Sub(was.began) >= wrongWindow {
			delete(g.guesses, address)
		}
	}
	return len(g.guesses) < guessers
}

func (g *guard) noteWrong(from string) {
	was := g.guesses[from]
	if now := g.now(); now.Sub(was.began) >= wrongWindow {
		was = guess{began: now}
	}
	was.wrong++
	g.guesses[from] = was
}

// addressOf returns the remote address; for IPv6 its network, as one machine may have many
// addresses in it.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.Unmap().Is4() {
		return host
	}
	network, err := addr.WithZone("").Prefix(64)
	if err != nil {
		return host
	}
	return network.String()
}
