package webhook

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/runnel-go/runnel/internal/guesses"
)

// A caller is who has made a request.
type caller struct {
	client string // "root" for root
	root   bool
	roles  []string
	from   string // its address
}

func (c *caller) has(role Role) bool { return slices.Contains(c.roles, string(role)) }

// Who may make a request.
var (
	anyToken         = func(*caller) bool { return true }
	onlyRoot         = func(c *caller) bool { return c.root }
	publishers       = func(c *caller) bool { return c.has(RolePublish) }
	publishersOrRoot = func(c *caller) bool { return c.root || c.has(RolePublish) }
	subscribers      = func(c *caller) bool { return c.root || c.has(RoleSubscribe) }
)

// A door decides which requests come in. It is safe for concurrent use.
type door struct {
	opts   *Options
	tokens *tokens
	tries  *guesses.Guard
	cross  http.CrossOriginProtection
}

// secure returns an error unless nobody on the way has read the request.
func (d *door) secure(r *http.Request) error {
	remote := hostOf(r.RemoteAddr)
	ok := r.TLS != nil || d.opts.AllowHTTP || remote.IsLoopback()
	if says := r.Header.Values("X-Forwarded-Proto"); r.TLS == nil && !d.opts.AllowHTTP && len(says) > 0 && d.trusts(remote) {
		ok = len(says) == 1 && strings.EqualFold(says[0], "https")
	}
	if !ok {
		return refusal(http.StatusForbidden, "this request came without TLS, and so did its token: use https. Behind a proxy that has TLS name it in TrustProxies, and let it set X-Forwarded-Proto; AllowHTTP lets everybody in")
	}
	if d.cross.Check(r) != nil {
		return refusal(http.StatusForbidden, "the request came from a page of another origin")
	}
	return nil
}

// admit returns who has made a request.
func (d *door) admit(r *http.Request) (*caller, error) {
	from := d.clientOf(r)
	c := &caller{from: from}
	if addr, err := netip.ParseAddr(from); err == nil {
		from = guesses.Address(netip.AddrPortFrom(addr, 0).String())
	}
	if d.tries.Blocked(from) {
		return nil, errGuesses
	}
	token := tokenOf(r)
	if token == "" {
		return nil, refusal(http.StatusUnauthorized, "a token is needed: as the user name of HTTP Basic, or as Authorization: Bearer")
	}
	given, root := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(d.opts.RootToken))
	if d.opts.RootToken != "" && subtle.ConstantTimeCompare(given[:], root[:]) == 1 {
		c.client, c.root = "root", true
	} else {
		found, err := d.tokens.find(r.Context(), token)
		if err != nil {
			return nil, err
		}
		if found != nil {
			c.client, c.roles = found.Client, found.Roles
		}
	}
	switch right := c.client != ""; {
	case !d.tries.Try(from, right):
		return nil, errGuesses
	case !right:
		return nil, refusal(http.StatusUnauthorized, "this token is not known")
	}
	return c, nil
}

var errGuesses = &httpError{
	code: http.StatusTooManyRequests, text: "too many wrong tokens from this address: wait a minute", after: strconv.Itoa(int(guesses.Window.Seconds())),
}

// tokenOf returns the token of a request, "" for none.
func tokenOf(r *http.Request) string {
	if user, _, ok := r.BasicAuth(); ok {
		return user
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// clientOf returns the address that a request came from: the last one that no trusted proxy has.
func (d *door) clientOf(r *http.Request) string {
	at := hostOf(r.RemoteAddr)
	if !at.IsValid() {
		return r.RemoteAddr
	}
	through := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, text := range slices.Backward(through) {
		text = strings.TrimSpace(text)
		before, err := netip.ParseAddr(text)
		if err != nil {
			before = hostOf(text) // some proxies name the port, too
		}
		if !before.IsValid() || !d.trusts(at) {
			break
		}
		at = before.Unmap()
	}
	return at.String()
}

func (d *door) trusts(at netip.Addr) bool {
	return slices.ContainsFunc(d.opts.TrustProxies, func(p netip.Prefix) bool { return p.Contains(at) })
}

// hostOf returns the address of a remote address, an invalid one if it is no address of IP.
func hostOf(remote string) netip.Addr {
	at, _ := netip.ParseAddrPort(remote)
	return at.Addr().Unmap().WithZone("")
}
